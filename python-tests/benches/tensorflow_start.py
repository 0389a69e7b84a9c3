"""How much sooner the second run of a TensorFlow script has its first result: what the caches on disk save.

    .venv-tensorflow/bin/python python-tests/benches/tensorflow_start.py [--target gemmini] [--rounds 3]

Two scripts: a training step operator by operator, and Keras's fit and predict without compiled functions.
Each runs in new processes: with an empty folder for the caches, again with the folder that the first run
left, and without act. Printed are medians of the seconds from the first operator to the first result, of the
processor's seconds of the same time, and of the whole process, most of which is TensorFlow's import. What a
run without act takes is TensorFlow's own work, of which no cache saves anything.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

BEGIN = """
import json, sys, time
import numpy as np, tensorflow as tf
began, worked = time.perf_counter(), time.process_time()
rng = np.random.default_rng(0)
def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)
"""

SCRIPTS = {
    "operators": """
x, labels = tf.constant(normal(32, 64)), tf.constant(rng.integers(0, 10, 32))
weights = [tf.Variable(0.1 * normal(64, 128)), tf.Variable(tf.zeros([128]))]
weights.append(tf.Variable(0.1 * normal(128, 10)))
with tf.GradientTape() as tape:
    hidden = tf.nn.gelu(x @ weights[0] + weights[1])
    logits = tf.tanh(hidden) @ weights[2]
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
for variable, gradient in zip(weights, tape.gradient(loss, weights)):
    variable.assign_sub(0.1 * tf.clip_by_norm(gradient, 1.0))
result = float(loss) + float(tf.reduce_sum(weights[0]))
""",
    "keras": """
layers = tf.keras.layers
model = tf.keras.Sequential([
    layers.Input((8, 8, 1)), layers.Conv2D(4, 3, activation="relu"), layers.BatchNormalization(),
    layers.MaxPooling2D(), layers.Flatten(), layers.Dense(16, "relu"), layers.Dense(2),
])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
x = normal(64, 8, 8, 1)
model.fit(x, rng.integers(0, 2, 64), batch_size=16, verbose=0)
result = float(model.predict(x, verbose=0).sum())
""",
}

END = """
print(json.dumps([time.perf_counter() - began, time.process_time() - worked, result]))
"""


def measured(script: str, folder: str | None, target: str | None) -> tuple[float, float, float]:
    """Seconds to the first result, processor seconds of them, and seconds of the whole process."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ACT_", "TF_", "XLA_"))}
    env |= {"TF_CPP_MIN_LOG_LEVEL": "3", "ACT_TENSORFLOW": "1" if folder else "0"}
    if folder:
        env["ACT_CACHE_DIR"] = folder
    if target:
        env["ACT_TARGET"] = target
    began = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-c", BEGIN + SCRIPTS[script] + END],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    whole = time.perf_counter() - began
    if run.returncode != 0:
        raise SystemExit(run.stderr)
    seconds, processor, _ = json.loads(run.stdout.splitlines()[-1])
    return seconds, processor, whole


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--script", choices=SCRIPTS, action="append")
    arguments = parser.parse_args()
    print(f"{'script':10} {'run':12} {'to result':>10} {'processor':>10} {'process':>10}")
    for script in arguments.script or SCRIPTS:
        runs: dict[str, list[tuple[float, float, float]]] = {"first": [], "second": [], "without act": []}
        for _ in range(arguments.rounds):
            with tempfile.TemporaryDirectory() as folder:
                runs["first"].append(measured(script, folder, arguments.target))
                runs["second"].append(measured(script, folder, arguments.target))
            runs["without act"].append(measured(script, None, None))
        medians = {
            run: [statistics.median(column) for column in zip(*rows, strict=True)]
            for run, rows in runs.items()
        }
        for run, row in medians.items():
            print(f"{script:10} {run:12}" + "".join(f" {seconds:9.2f}s" for seconds in row))
        pairs = list(zip(medians["first"], medians["second"], strict=True))
        print(f"{script:10} {'ratio':12}" + "".join(f" {first / second:10.2f}" for first, second in pairs))
        # What act adds to TensorFlow's own work.
        added = [
            (first - own) / (second - own) if second > own else float("inf")
            for (first, second), own in zip(pairs, medians["without act"], strict=True)
        ]
        print(f"{script:10} {'act alone':12}" + "".join(f" {ratio:10.2f}" for ratio in added))


if __name__ == "__main__":
    main()
