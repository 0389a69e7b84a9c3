"""act as a device of TensorFlow: how it is turned on, what runs on it, and what cannot be done there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import tensorflow_python


def answer(code: str, **more: Any) -> Any:
    """What a program prints last, as JSON."""
    process = tensorflow_python("-c", code, **more)
    assert process.returncode == 0, process.stdout[-500:] + process.stderr[-3000:]
    return json.loads(process.stdout.splitlines()[-1])


def test_without_being_asked_for_act_is_not_there() -> None:
    """No module of ours is imported, no library loaded, and operators run where they always did."""
    code = """
import json, sys
before = [name for name in sys.modules if name.startswith("act_pjrt")]
import tensorflow as tf
where = tf.constant([1.0]) + 1
ours = [name for name in sys.modules if name.startswith("act_pjrt")]
mapped = [line for line in open("/proc/self/maps") if "libact" in line or "pjrt_c_api" in line]
kinds = sorted({device.device_type for device in tf.config.list_physical_devices()})
print(json.dumps([before, ours, mapped, kinds, where.device]))
"""
    for off in ({}, {"ACT_TENSORFLOW": "0"}):
        before, ours, mapped, kinds, where = answer(code, act=False, **off)
        assert before == ours == mapped == []
        assert kinds == ["CPU"]
        assert where.endswith("CPU:0")


def test_the_variable_turns_it_on() -> None:
    code = """
import json, os, subprocess, sys
import tensorflow as tf
devices = [device.name for device in tf.config.list_physical_devices("ACT")]
where = (tf.constant([1.0]) + 1).device
with tf.device("/device:ACT:0"):
    named = (tf.ones([2, 2]) @ tf.ones([2, 2])).device
with tf.device("/CPU:0"):
    host = tf.ones([2, 2])
    try:
        host = tf.function(lambda x: x @ x, jit_compile=True)(host)
    except tf.errors.UnimplementedError:
        # It would end the process.
        assert tf.__version__.startswith("2.20.")
# What TensorFlow had to be told by its variable must not reach processes that this one starts.
child = subprocess.run(["env"], stdout=subprocess.PIPE, text=True).stdout
print(json.dumps([devices, where, named, host.device, "TF_XLA_FLAGS" in child, "PLUGGABLE" in child]))
"""
    devices, where, named, host, flags, plugin = answer(code)
    assert devices == ["/physical_device:ACT:0"]
    assert where.endswith("ACT:0")
    assert named.endswith("ACT:0")
    assert host.endswith("CPU:0")
    assert not flags
    assert not plugin


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_program_can_turn_it_on(order: str) -> None:
    lines = ["import act_pjrt.tensorflow", "act_pjrt.tensorflow.enable()", "act_pjrt.tensorflow.enable()"]
    load = ["import tensorflow as tf"]
    program = lines + load if order == "before" else load + lines
    program.append("import json; print(json.dumps((tf.constant(7) + 4).device), flush=True)")
    assert answer("\n".join(program), act=False).endswith("ACT:0")


def test_it_cannot_be_turned_on_too_late() -> None:
    code = """
import tensorflow as tf, act_pjrt.tensorflow
tf.constant(1)
act_pjrt.tensorflow.enable()
"""
    process = tensorflow_python("-c", code, act=False)
    assert process.returncode == 1
    assert "before its first operation" in process.stderr.splitlines()[-1]


def test_an_unknown_release_has_no_devices_and_one_warning() -> None:
    code = """
import json, warnings
import tensorflow as tf, act_pjrt.tensorflow
tf.__version__ = "2.99.0"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    act_pjrt.tensorflow.enable()
    act_pjrt.tensorflow.enable()
devices = [device.name for device in tf.config.list_physical_devices()]
print(json.dumps([[str(warning.message) for warning in caught], devices, tf.constant(7).numpy().item()]))
"""
    (warning,), devices, value = answer(code, act=False)
    assert "2.99.0" in warning
    assert "2.20 and 2.21" in warning
    assert "pip install" in warning
    assert devices == ["/physical_device:CPU:0"]
    assert value == 7


def test_a_wrong_target_is_told() -> None:
    code = "import tensorflow as tf; print(tf.config.list_physical_devices('ACT')); tf.constant(1)"
    process = tensorflow_python("-c", code, target="no_such_target")
    assert process.returncode == 1
    assert "InvalidArgumentError: act: " in process.stderr
    assert "no_such_target" in process.stderr.splitlines()[-1]


# Integer products are compared exactly with numpy, the others by their error.
OFFLOAD = """
import json, sys
import act_pjrt, numpy as np, tensorflow as tf

def executed():
    last = act_pjrt.last_run()
    return last["total"]["instructions"] if last else {}

rng = np.random.default_rng(0)
if sys.argv[1] == "int8":
    a, b = (rng.integers(-128, 128, shape, dtype=np.int8) for shape in ((32, 48), (48, 64)))
    exact = a.astype(np.int32) @ b.astype(np.int32)
    product = lambda a, b: tf.matmul(a, b, output_type=tf.int32)
    fused = lambda a, b: tf.nn.relu(product(a, b)) + 3
    wanted = np.maximum(exact, 0) + 3
else:
    dtype = tf.bfloat16 if sys.argv[1] == "bfloat16" else tf.float32
    a, b = (tf.cast(rng.standard_normal(shape).astype(np.float32), dtype) for shape in ((64, 64), (64, 64)))
    exact = a.numpy().astype(np.float32) @ b.numpy().astype(np.float32)
    product = tf.matmul
    fused = lambda a, b: tf.nn.softmax(tf.matmul(a, b)) if dtype == tf.bfloat16 else tf.matmul(a, b) + 1.0
    exponentials = np.exp(exact - exact.max(1, keepdims=True))
    wanted = exponentials / exponentials.sum(1, keepdims=True) if dtype == tf.bfloat16 else exact + 1
results = []
for function, expected in ((product, exact), (fused, wanted)):
    got = tf.function(function, jit_compile=True)(tf.constant(a), tf.constant(b)).numpy()
    error = np.max(np.abs(got.astype(np.float64) - expected)) / np.max(np.abs(expected))
    results.append([float(error), executed()])
eager = product(tf.constant(a), tf.constant(b))
programs = act_pjrt.executables()
print(json.dumps([results, [program["executions"] for program in programs], act_pjrt.regions()]))
"""


@pytest.mark.parametrize(
    ("target", "types", "instruction", "tolerance"),
    [
        ("gemmini", "int8", "matmul", 0),
        ("x86", "int8", "row_times_matrix_s8_2", 0),
        ("h_qkv", "bfloat16", "gemm", 2**-5),
        ("trainium", "bfloat16", "nc_matmul_bf16", 2**-5),
    ],
)
def test_products_run_on_the_device(target: str, types: str, instruction: str, tolerance: float) -> None:
    """Alone and with what fuses with it, in compiled functions and eagerly."""
    process = tensorflow_python("-c", OFFLOAD, types, target=target)
    assert process.returncode == 0, process.stderr[-3000:]
    results, executions, regions = json.loads(process.stdout.splitlines()[-1])
    for error, executed in results:
        assert error <= tolerance
        assert executed.get(instruction, 0) >= 1
    # Three programs, the eager operator's among them.
    assert executions == [1, 1, 1]
    assert [region["where"] for region in regions].count("device") == 3


CANNOT = """
import json
import numpy as np, tensorflow as tf

def outcome(body):
    try:
        return f"ran: {body()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"

x = tf.ones([4, 4])
compiled = tf.function(lambda x: x @ x, jit_compile=True)
outcomes = {
    "print": outcome(lambda: tf.function(lambda x: (tf.print(x), x)[1], jit_compile=True)(x)),
    "string": outcome(lambda: tf.function(lambda x, s: x, jit_compile=True)(x, tf.constant("a"))),
    "memory": outcome(lambda: tf.config.experimental.get_memory_info("ACT:9")),
    "stage": outcome(lambda: compiled.experimental_get_compiler_ir(x)(stage="optimized_hlo_dot")),
    "number": outcome(lambda: tf.debugging.check_numerics(tf.constant([np.nan]), "mine")),
    "number in a function": outcome(
        lambda: tf.function(lambda x: tf.debugging.check_numerics(x, "mine") + 1)(tf.constant([np.inf]))
    ),
}
print(json.dumps([outcomes, float(tf.reduce_sum(compiled(x)))]))
"""


def test_what_cannot_be_done_there_fails_with_its_reason() -> None:
    """And what comes after it runs."""
    outcomes, after = answer(CANNOT)
    assert outcomes["print"].startswith("InvalidArgumentError")
    assert "Detected unsupported operations" in outcomes["print"]
    assert outcomes["string"].startswith("InvalidArgumentError")
    assert "string" in outcomes["string"]
    assert outcomes["memory"].startswith("ValueError: No matching devices found")
    assert outcomes["stage"].startswith("ValueError: act: there is no stage optimized_hlo_dot")
    assert outcomes["number"].startswith("InvalidArgumentError")
    assert "mine : Tensor had NaN values" in outcomes["number"]
    assert outcomes["number in a function"].startswith("InvalidArgumentError")
    assert after == 64


TEXTS = """
import json
import numpy as np, tensorflow as tf
a = tf.constant(np.ones((32, 32), np.int8))
weights = tf.Variable(np.ones((32, 32), np.int8))
offset = tf.constant(np.ones((32, 32), np.int32))

@tf.function(jit_compile=True)
def product(a):
    return tf.matmul(a, weights, output_type=tf.int32) + offset

text = product.experimental_get_compiler_ir(a)
stages = ["stablehlo", "hlo", "hlo_no_metadata", "optimized_hlo"]
texts = {stage: text(stage=stage) for stage in stages}
texts["by specification"] = product.experimental_get_compiler_ir(tf.TensorSpec([32, 32], tf.int8))(
    stage="optimized_hlo"
)
texts["of a platform"] = text(stage="optimized_hlo", platform_name="ACT")
texts["for CPU"] = tf.function(lambda x: x @ x, jit_compile=True).experimental_get_compiler_ir(
    tf.ones([4, 4])
)(stage="optimized_hlo", device_name="CPU:0")
stages = ["hlo_serialized", "optimized_hlo_serialized", "optimized_hlo_proto_serialized"]
sizes = [len(text(stage=stage)) for stage in stages]
# Its compilation is not the function's.
right = bool((product(a).numpy() == 33).all())
print(json.dumps([texts, sizes, right]))
"""


def test_programs_are_shown_as_they_run() -> None:
    """Before XLA and after it, with a call in the place of what the device does."""
    texts, sizes, right = answer(TEXTS, target="gemmini")
    assert texts["stablehlo"].startswith(("module", "#loc"))
    for stage in ("hlo", "hlo_no_metadata"):
        assert texts[stage].startswith("HloModule")
        assert " dot(" in texts[stage]
        assert "custom-call" not in texts[stage]
    assert "metadata=" not in texts["hlo_no_metadata"]
    for stage in ("optimized_hlo", "by specification", "of a platform"):
        assert texts[stage].startswith("HloModule")
        assert 'custom_call_target="act' in texts[stage], texts[stage]
        assert " dot(" not in texts[stage]
    assert " dot(" in texts["for CPU"]
    assert min(sizes) > 100
    # HloProto has the module behind a tag and its length.
    assert 2 <= sizes[2] - sizes[1] <= 4
    assert right


def test_tensors_are_exchanged_by_dlpack() -> None:
    code = """
import json
import numpy as np, tensorflow as tf
x = tf.constant([[1.0, 2.0]]) * 3
there = tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x))
device = [int(number) for number in x.__dlpack_device__()]
values = [np.from_dlpack(x).tolist(), np.from_dlpack(tf.constant([7, 8])).tolist(), there.numpy().tolist()]
print(json.dumps([values, device, (x + there).device[-5:]]))
"""
    # 1, 0: the host's memory.
    assert answer(code) == [[[[3, 6]], [7, 8], [[3, 6]]], [1, 0], "ACT:0"]


TWO_DEVICES = """
import json
import numpy as np, tensorflow as tf
x = tf.constant(np.arange(16, dtype=np.float32).reshape(4, 4))
square = tf.function(lambda x: tf.matmul(x, x) + 1, jit_compile=True)
places, values = [], []
for at in (0, 1):
    with tf.device(f"/device:ACT:{at}"):
        variable = tf.Variable(x)
        variable.assign_add(tf.ones([4, 4]))
        for result in (tf.identity(x), square(x), square(variable), x * 2, tf.constant(3) + at):
            places.append(result.device[-5:])
            values.append(float(tf.reduce_sum(tf.cast(result, tf.float32))))
names = [device.name for device in tf.config.list_physical_devices("ACT")]
print(json.dumps([names, places, values]))
"""


def test_two_devices() -> None:
    names, places, values = answer(TWO_DEVICES, devices=2)
    assert names == ["/physical_device:ACT:0", "/physical_device:ACT:1"]
    # int32 results are in the host's memory, and say so.
    assert places[:4] == ["ACT:0"] * 4
    assert places[5:9] == ["ACT:1"] * 4
    assert values[:4] == values[5:9]
    assert values[:4] == [120, 3936, 4960, 240]
    assert (values[4], values[9]) == (3, 4)


TOGETHER = """
import json
{imports}
import numpy as np
x = np.arange(16, dtype=np.float32).reshape(4, 4)
theirs = tf.matmul(x, x)
ours = jnp.matmul(x, x)
again = tf.matmul(theirs, x).numpy() - np.asarray(jnp.matmul(ours, x))
print(json.dumps([theirs.device, jax.devices()[0].device_kind, float(np.abs(again).max())]))
"""


@pytest.mark.parametrize("first", ["jax", "tensorflow"])
def test_jax_and_tensorflow_in_one_process(first: str) -> None:
    imports = ["import jax, jax.numpy as jnp; jax.devices()", "import tensorflow as tf; tf.constant(1.0)"]
    code = TOGETHER.format(imports="\n".join(imports if first == "jax" else reversed(imports)))
    device, kind, difference = answer(code, platforms="act", target="x86")
    assert device.endswith("ACT:0")
    assert kind == "x86"
    assert difference < 1e-3


def test_keras_on_jax() -> None:
    """Then it is JAX that runs on act, TensorFlow or not."""
    code = """
import json
import jax, keras, numpy as np
import act_pjrt
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(4, "relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.ones((16, 8), np.float32)
loss = model.fit(x, x[:, :1], epochs=2, verbose=0).history["loss"]
print(json.dumps([keras.backend.backend(), act_pjrt.is_act(jax.devices()[0]), loss[1] < loss[0]]))
"""
    assert answer(code, platforms="act", KERAS_BACKEND="jax") == ["jax", True, True]


MEMORY = """
import json
import numpy as np, tensorflow as tf

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((256,)), layers.Dense(256), layers.Dense(256)])
x = np.ones((64, 256), np.float32)
sizes = []
for call in range(1000):
    model.predict_on_batch(x)
    if call in (199, 999):
        sizes.append(resident())
print(json.dumps(sizes))
"""


def test_a_thousand_predictions_take_no_more_memory() -> None:
    """Each has 64 KiB of input and as much of each layer's output: 800 of them would be more than 100 MiB."""
    early, late = answer(MEMORY)
    assert late - early < 16 * 1024


CACHED = """
import json
import act_pjrt, numpy as np, tensorflow as tf
a = np.arange(-32, 32, dtype=np.int8).reshape(4, 16)
x = tf.constant(a)
product = tf.function(lambda x: tf.matmul(x, x, transpose_b=True, output_type=tf.int32), jit_compile=True)
values = [product(x), tf.cast(x, tf.float32) * 2 + 1, tf.nn.softmax(tf.ones([3, 3]))]
right = bool((values[0].numpy() == a.astype(np.int32) @ a.T.astype(np.int32)).all())
sums = [float(tf.reduce_sum(tf.cast(value, tf.float32))) for value in values]
executed = act_pjrt.last_run()["total"]["instructions"]
print(json.dumps([right, sums, executed, act_pjrt.regions(), act_pjrt.kernel_cache()]))
"""


def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    """Programs come from the cache with their kernels and with what is known of their regions."""

    def entries() -> dict[Path, bytes]:
        return {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    first = answer(CACHED, target="gemmini", ACT_CACHE_DIR=str(tmp_path))
    kept = entries()
    second = answer(CACHED, target="gemmini", ACT_CACHE_DIR=str(tmp_path))
    assert first[0]
    assert first[2]["matmul"] >= 1
    assert first[4]["missing"] >= 1
    # Not even the kernels' cache was asked.
    assert second[4] == {"found": 0, "missing": 0, "damaged": 0}
    assert second[:4] == first[:4]
    assert entries() == kept
    # What is damaged is compiled anew.
    for file, contents in kept.items():
        file.write_bytes(contents[: len(contents) // 2])
    third = answer(CACHED, target="gemmini", ACT_CACHE_DIR=str(tmp_path))
    assert third[:4] == first[:4]


NAMED = """
import tensorflow as tf
tanh = tf.function(lambda x: tf.tanh(x, name="{name}"))
print(float(tanh(tf.constant(0.5))))
"""


def test_the_name_of_an_operator_does_not_make_another_program(tmp_path: Path) -> None:
    """TensorFlow takes it from a node, and of several equal ones not the same in every process."""
    values, programs = [], []
    for name in ("first", "second"):
        values.append(answer(NAMED.format(name=name), ACT_CACHE_DIR=str(tmp_path)))
        programs.append(sum(file.is_file() for file in tmp_path.rglob("*")))
    assert values == [pytest.approx(0.46211716)] * 2
    assert programs[0] == programs[1] > 0


CNN = """
import json, sys
import numpy as np, tensorflow as tf
layers = tf.keras.layers
model = tf.keras.Sequential(
    [
        layers.Input((12, 12, 3)),
        layers.Conv2D(8, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(16, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(10),
    ]
)
rng = np.random.default_rng(1)
shapes = [weight.shape for weight in model.get_weights()]
model.set_weights([0.1 * rng.standard_normal(shape).astype(np.float32) for shape in shapes])
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.SGD(0.05), loss, jit_compile=sys.argv[2] == "compiled")
x, y = rng.standard_normal((96, 12, 12, 3)).astype(np.float32), rng.integers(0, 10, 96)
model.fit(x, y, batch_size=32, epochs=1, shuffle=False, verbose=0)
np.savez(sys.argv[1], *model.get_weights())
print(json.dumps(tf.constant(1.0).device[-5:]))
"""


def test_a_cnn_trains_as_on_stock_tensorflow(tmp_path: Path) -> None:
    """Three steps from the same weights, in compiled functions and operator by operator."""
    import numpy as np

    weights = {}
    for device, act, mode in [
        ("CPU:0", False, "eager"),
        ("ACT:0", True, "eager"),
        ("ACT:0", True, "compiled"),
    ]:
        file = tmp_path / f"{device}-{mode}.npz"
        process = tensorflow_python("-c", CNN, file, mode, act=act)
        assert process.returncode == 0, process.stderr[-3000:]
        assert json.loads(process.stdout.splitlines()[-1]) == device
        weights[device, mode] = [array for _, array in sorted(np.load(file).items())]
    stock = weights["CPU:0", "eager"]
    for mode in ("eager", "compiled"):
        for got, wanted in zip(weights["ACT:0", mode], stock, strict=True):
            assert np.max(np.abs(got - wanted)) < 1e-5, mode


def test_functions_are_clustered_where_the_user_turns_that_on() -> None:
    code = """
import json
import act_pjrt, tensorflow as tf

@tf.function
def layers(x):
    for _ in range(3):
        x = tf.tanh(x @ x) * 2 + 1
    return x

total = float(tf.reduce_sum(layers(tf.ones([8, 8]))))
print(json.dumps([total, [program["module"] for program in act_pjrt.executables()]]))
"""
    total, modules = answer(code, target="x86", TF_XLA_FLAGS="--tf_xla_auto_jit=2")
    assert total == pytest.approx(192, rel=1e-5)
    assert len(modules) == 1
    assert modules[0].startswith("cluster_")
