"""What act costs TensorFlow: its start where nobody asks for act, and small calls where somebody does.

    .venv-tensorflow/bin/python python-tests/benches/tensorflow_unselected.py [--rounds 10]

Processes of both kinds take turns. For the start each has a folder with links to all installed packages, with
act's among them or without; the time is that of finding packages, ``import tensorflow`` and the first list of
devices. The calls are of a compiled function with one sum, on act without a target and on stock TensorFlow.
Printed are medians, the ratios of both, and the quartiles of the start without act: what a ratio is worth.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import act_pjrt

START = """
import site, sys, time
begin = time.perf_counter()
site.addsitedir(sys.argv[1])
import tensorflow as tf
devices = tf.config.list_physical_devices()
print(time.perf_counter() - begin)
maps = open("/proc/self/maps").read()
assert "libact" not in maps and not any(name.startswith("act_pjrt") for name in sys.modules)
assert [device.device_type for device in devices] == ["CPU"]
"""

# Many calls in a row, as one is as short as what disturbs it.
CALLS = """
import sys, time
import tensorflow as tf
add = tf.function(lambda x: x + 1, jit_compile=True)
x = tf.zeros([8])
assert add(x).device.endswith(sys.argv[1] + ":0")
for _ in range(200):
    add(x)
begin = time.perf_counter()
for _ in range(2000):
    y = add(x)
y.numpy()
print((time.perf_counter() - begin) / 2000)
"""


def linked(folder: Path, with_act: bool) -> Path:
    """A folder that has what is beside act_pjrt, linked."""
    folder.mkdir()
    for entry in Path(act_pjrt.__file__).resolve().parents[1].iterdir():
        if with_act or not entry.name.startswith("act_pjrt"):
            (folder / entry.name).symlink_to(entry)
    return folder


def seconds(*command: str, **variables: str) -> float:
    """What a new process prints."""
    foreign = ("JAX_", "ACT_", "TF_", "XLA_", "PYTHON")
    env = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    env |= {"TF_CPP_MIN_LOG_LEVEL": "3"} | variables
    run = subprocess.run([sys.executable, *command], env=env, check=True, text=True, capture_output=True)
    return float(run.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folders = [linked(Path(name) / kind, kind == "with") for kind in ("with", "without")]
        start: list[list[float]] = [[], []]
        calls: list[list[float]] = [[], []]
        # The first round fills the file cache.
        for number in range(rounds + 1):
            for kind in (0, 1) if number % 2 else (1, 0):
                # No site-packages but those of the folder.
                started = seconds("-S", "-c", START, str(folders[kind]))
                called = seconds("-c", CALLS, "ACT" if kind == 0 else "CPU", ACT_TENSORFLOW=str(1 - kind))
                if number:
                    start[kind].append(started)
                    calls[kind].append(called)
    for what, times, unit in (("start", start, 1.0), ("small call", calls, 1e6)):
        act, own = (statistics.median(of_kind) * unit for of_kind in times)
        shown = "s" if unit == 1 else "us"
        print(f"{what}: {act:.2f} {shown} with act, {own:.2f} {shown} without: ratio {act / own:.3f}")
    low, _, high = statistics.quantiles(start[1], n=4)
    print(f"quartiles of the start without act: {low:.2f} s and {high:.2f} s")


if __name__ == "__main__":
    main()
