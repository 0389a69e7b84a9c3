"""Bad settings end in a Python exception that says what to do; never in a crash, and never unnoticed."""

from __future__ import annotations

import subprocess
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
