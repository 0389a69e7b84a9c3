"""Bad settings end in a Python exception that says what to do; never in a crash, and never unnoticed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from conftest import python

ADD = "import jax.numpy as jnp; print(jnp.arange(3) + 1)"


def message(process: subprocess.CompletedProcess[str]) -> str:
    """What a process printed that ended by an exception; fails the test where it ended in any other way."""
    # A signal shows as a negative number.
    assert process.returncode == 1, (process.returncode, process.stderr[-2000:])
    assert "Traceback" in process.stderr
    return process.stderr


def test_unset_platforms_leave_jax_alone() -> None:
    code = """
import jax, jax.numpy as jnp
print(jnp.arange(3) + 1, jax.devices())
maps = open("/proc/self/maps").read()
print("libact_pjrt" in maps, "pjrt_c_api_cpu_plugin" in maps, "libortools" in maps)
"""
    process = python("-c", code)
    assert process.stdout == "[1 2 3] [CpuDevice(id=0)]\nFalse False False\n", process.stderr


def test_platform_may_be_chosen_by_configuration() -> None:
    code = """
import jax, act_pjrt
jax.config.update("jax_platforms", "act")
print(*map(act_pjrt.is_act, jax.devices()))
"""
    assert python("-c", code).stdout == "True\n"


def test_both_platforms_side_by_side() -> None:
    code = """
import jax, jax.numpy as jnp, act_pjrt
mine, other = jax.devices("act")[0], jax.devices("cpu")[0]
print(act_pjrt.is_act(mine), act_pjrt.is_act(other), jax.devices()[0] == mine)
print(jax.device_put(jnp.arange(3), other) + 1)
"""
    process = python("-c", code, platforms="act,cpu")
    assert process.stdout == "True False True\n[1 2 3]\n", process.stderr


def test_a_jax_that_is_too_old_is_refused_with_what_to_do() -> None:
    process = python("-c", f"import jax; jax.__version__ = '0.8.3'; {ADD}", platforms="act")
    text = message(process)
    assert f"act-pjrt {version('act-pjrt')} works with jax 0.9 to 0.12, and this is jax 0.8.3" in text
    assert 'pip install "jax>=0.9,<0.13" "jaxlib>=0.9,<0.13"' in text


def test_a_jax_that_is_newer_than_all_tried_is_warned_of() -> None:
    process = python("-c", f"import jax; jax.__version__ = '0.13.1.dev2'; {ADD}", platforms="act")
    assert process.stdout == "[1 2 3]\n"
    assert process.stderr.count("RuntimeWarning: act-pjrt") == 1
    assert "this is jax 0.13.1.dev2" in process.stderr


def test_missing_inner_library(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere.so"
    text = message(python("-c", ADD, platforms="act", ACT_XLA_PLUGIN=str(nowhere)))
    assert str(nowhere) in text
    assert "ACT_XLA_PLUGIN" in text


@pytest.mark.parametrize("content", ["text", "library"])
def test_wrong_inner_library(content: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.so"
    if content == "text":
        wrong.write_text("not a library")
    else:
        wrong.symlink_to("/lib/x86_64-linux-gnu/libm.so.6")
    text = message(python("-c", ADD, platforms="act", ACT_XLA_PLUGIN=str(wrong)))
    assert str(wrong) in text


def test_unknown_setting_lists_the_known_ones() -> None:
    text = message(python("-c", ADD, platforms="act", ACT_NUMERICS="sloppy"))
    assert "ACT_NUMERICS" in text
    assert "sloppy" in text
    assert "exact, xla, fast" in text


def test_jax_options_mean_the_same_as_the_environment() -> None:
    code = f"import jax; jax.config.update('jax_pjrt_client_create_options', 'numerics:sloppy'); {ADD}"
    assert "sloppy" in message(python("-c", code, platforms="act"))


def test_a_program_error_is_an_exception() -> None:
    """The device stays usable after a callback has failed."""
    code = """
import jax, jax.numpy as jnp, numpy as np
def fail(x): raise ValueError("deliberate")
f = jax.jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct((), jnp.float32), x))
for _ in range(2):
    try: f(1.0).block_until_ready()
    except jax.errors.JaxRuntimeError as error: print("deliberate" in str(error))
print(jnp.arange(3).sum())
"""
    process = python("-c", code, platforms="act")
    assert process.stdout == "True\nTrue\n3\n", process.stderr


FULL_DISK = """
import resource
import act_pjrt, jax, jax.numpy as jnp, numpy as np
product = jax.jit(lambda a: jax.lax.dot(a, a, preferred_element_type=jnp.int32))
jax.devices()
# From here on every write to a file fails, as on a full disk.
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
try:
    product(np.ones((16, 16), np.int8))
except jax.errors.JaxRuntimeError as error:
    print(error, flush=True)
for size in (16, 8):
    print(product(jnp.ones((size, size), jnp.int8))[3, 4], act_pjrt.regions()[-1]["where"], flush=True)
"""


def test_a_full_disk_ends_the_dump_with_an_error(tmp_path: Path) -> None:
    """The program that could not be dumped is told, with its operator and line; later calls work."""
    script = tmp_path / "full.py"
    script.write_text(FULL_DISK)
    process = subprocess.run(
        # The output goes through a pipe: a file could not be written either.
        ["bash", "-c", '"$@" | cat', "bash", sys.executable, script],
        env=os.environ
        | {
            "JAX_PLATFORMS": "act",
            "ACT_TARGET": "gemmini",
            "ACT_DUMP": "1",
            "ACT_DUMP_DIR": str(tmp_path / "dump"),
            "ACT_CACHE_DIR": str(tmp_path / "cache"),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    said, *later = process.stdout.splitlines()
    assert later == ["16 device", "8 device"], process.stderr
    assert f"jit(<lambda>)/dot_general ({script}:4): cannot write the dump to {tmp_path / 'dump'}" in said
    assert "File too large" in said
    assert "set ACT_DUMP_DIR to a folder that can be written" in said
    assert not [file for file in (tmp_path / "dump").rglob("*") if file.is_file() and file.stat().st_size]
    assert not [file for file in (tmp_path / "cache").rglob("*") if file.is_file()]


FULL_DISK_ON_HOST = """
import resource
import jax, jax.numpy as jnp
jax.devices()
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
sine = jax.jit(lambda x:
    jnp.sin(x))
try:
    sine(1.0)
except jax.errors.JaxRuntimeError as error:
    print(error, flush=True)
print(sine(0.0), flush=True)
"""


def test_a_full_disk_is_told_to_programs_without_products_too(tmp_path: Path) -> None:
    script = tmp_path / "full.py"
    script.write_text(FULL_DISK_ON_HOST)
    process = python(
        script, platforms="act", target="gemmini", ACT_DUMP="1", ACT_DUMP_DIR=str(tmp_path / "dump")
    )
    said, later = process.stdout.splitlines()
    assert f"jit(<lambda>)/sin ({script}:7): cannot write the dump to {tmp_path / 'dump'}" in said
    assert later == "0.0"


SURFACE = """
import jax, jax.numpy as jnp
from jax.experimental import serialize_executable

def said(call):
    try:
        call()
    except Exception as error:
        return str(error).splitlines()[0]

twice = jax.jit(lambda a, b: (a + 1, b + 1), donate_argnums=(0, 1))
once = jax.jit(lambda a: a + 1, donate_argnums=0)
x = jnp.ones(4)
once(x)
print(said(lambda: once(x)))
y = jnp.ones(4)
print(said(lambda: twice(y, y)))
unknown = jax.jit(lambda x: jax.ffi.ffi_call("nowhere", jax.ShapeDtypeStruct((4,), jnp.float32))(x))
print(said(lambda: unknown(y)))
print(said(lambda: jnp.zeros(1 << 44).block_until_ready()))
with jax.debug_nans(True):
    print(said(lambda: jnp.log(-jnp.ones(3))))
with jax.transfer_guard("disallow"):
    print(said(lambda: jnp.ones(3) + [1.0]))
print(jnp.arange(3) + 1)
"""


def test_an_unknown_custom_call_is_named_with_its_line(tmp_path: Path) -> None:
    script = tmp_path / "calls.py"
    script.write_text(
        "import jax, jax.numpy as jnp\n"
        "def g(x):\n"
        "    return jax.ffi.ffi_call('nowhere', jax.ShapeDtypeStruct((4,), jnp.float32))(x)\n"
        "try: jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: g(x) + 1, x))(jnp.ones(4))\n"
        "except jax.errors.JaxRuntimeError as error: print(error)\n"
        "print(jnp.arange(3) + 1)\n"
    )
    process = python(script, platforms="act")
    said, place, after = process.stdout.splitlines()
    assert "NOT_FOUND" in said or "No FFI handler registered for nowhere" in said
    assert place.startswith("called by jit(<lambda>)/while/body/")
    assert place.endswith(f"({script}:3)")
    assert after == "[1 2 3]"


FAULTY = """
import jax, jax.numpy as jnp
product = jax.jit(lambda a: jax.lax.dot(a, a, preferred_element_type=jnp.int32))
ones = jnp.ones((16, 16), jnp.int8)
try:
    print(product(ones)[3, 4])
except jax.errors.JaxRuntimeError as error:
    print(" ".join(str(error).split()))
print(jax.jit(lambda a: product(a) + 1)(jnp.ones((8, 8), jnp.int8))[3, 4])
"""


def test_a_kernel_that_faults_in_the_simulator_is_named_with_its_line(tmp_path: Path) -> None:
    script, cache = tmp_path / "faulty.py", tmp_path / "cache"
    script.write_text(FAULTY)
    assert python(script, platforms="act", target="gemmini", ACT_CACHE_DIR=str(cache)).stdout == "16\n9\n"
    for file in [file for file in cache.rglob("*") if file.is_file()]:
        entry = json.loads(file.read_bytes()[64:])
        code = entry["entry"]["code"]
        # The address that results are read from, behind the accumulator's end; the digest is right.
        code["mlir"] = code["mlir"].replace("%4 = arith.constant 0 ", "%4 = arith.constant 100000 ")
        content = json.dumps(entry, separators=(",", ":")).encode()
        if "array<i64: 1024>" in code["mlir"]:
            file.write_bytes(hashlib.sha256(content).hexdigest().encode() + content)
    process = python(script, platforms="act", target="gemmini", ACT_CACHE_DIR=str(cache))
    said, after = process.stdout.splitlines()
    assert f"jit(<lambda>)/dot_general ({script}:3) has failed on gemmini" in said
    assert "mvout" in said
    assert "leaves acc" in said
    assert after == "9"


ILL_FORMED = """
import jax, jax.numpy as jnp
from jax._src import xla_bridge
from jaxlib import _jax
client = xla_bridge.get_backend()
devices = _jax.DeviceList(tuple(client.local_devices()[:1]))
wrapped = (
    "module @m {{ func.func public @main(%x: tensor<4xf32>) -> tensor<{}xf32> "
    "{{ {} return %0 : tensor<{}xf32> }} }}"
)
for text in (
    "nonsense",
    wrapped.format(5, "%0 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<5xf32>", 5),
    wrapped.format(4, "%0 = stablehlo.nowhere %x : tensor<4xf32>", 4),
    wrapped.format(4, "%0 = stablehlo.custom_call @nowhere(%x) : (tensor<4xf32>) -> tensor<4xf32>", 4),
):
    try:
        client.compile_and_load(text, devices, _jax.CompileOptions())
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
print(jnp.arange(3) + 1)
"""


def test_ill_formed_programs_are_refused_as_by_cpu() -> None:
    act, cpu = (python("-c", ILL_FORMED, platforms=platform) for platform in ("act", "cpu"))
    assert act.returncode == 0, act.stderr
    assert act.stdout == cpu.stdout
    assert len(act.stdout.splitlines()) == 5
    assert act.stdout.endswith("[1 2 3]\n")


def test_faults_of_programs_are_those_of_cpu() -> None:
    """Donated twice, unknown custom calls, too little memory, not a number: the same exceptions."""
    act, cpu = (python("-c", SURFACE, platforms=platform) for platform in ("act", "cpu"))
    assert act.returncode == 0, act.stderr
    assert act.stdout.replace("ActDevice", "CpuDevice") == cpu.stdout
    assert "deleted" in act.stdout
    assert "No FFI handler registered for nowhere" in act.stdout
    assert act.stdout.endswith("[1 2 3]\n")
