"""A cost model given as a Python function: it is asked, its faults are told, kernels are keyed by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import python

_SCRIPT = """
import json, os, sys
import act_pjrt, jax, jax.numpy as jnp
import numpy as np

calls = []

def count(part):
    if "loop" in part:
        return part["trip"] * sum(map(count, part["body"]))
    return 1 if "instr" in part else part.get("host_copy", 0)

def cost(code):
    calls.append(code["isa"])
    return sum(map(count, code["program"]))

def broken(code):
    raise KeyError("no such thing")

mode = os.environ["MODE"]
if mode == "broken":
    act_pjrt.set_cost_model(broken)
elif mode == "negative":
    act_pjrt.set_cost_model(lambda code: -1.0)
elif mode == "count":
    act_pjrt.set_cost_model(cost)
a = np.arange(-512, 512, dtype=np.int32).reshape(32, 32).astype(np.int8)
product = jax.jit(lambda x, y: jax.lax.dot(x, y, preferred_element_type=jnp.int32))
said = {}
try:
    got = np.asarray(product(a, a))
    said["right"] = bool((got == a.astype(np.int32) @ a.astype(np.int32)).all())
except Exception as error:
    said["error"] = str(error)
    act_pjrt.set_cost_model(None)
    got = np.asarray(product(a, a))
    said["right"] = bool((got == a.astype(np.int32) @ a.astype(np.int32)).all())
said["calls"] = len(calls)
said["cache"] = act_pjrt.kernel_cache()
said["regions"] = [region.get("key") for region in act_pjrt.regions()]
print(json.dumps(said))
"""


def _run(mode: str, cache: Path) -> dict[str, Any]:
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "act",
        "ACT_TARGET": "gemmini",
        "ACT_CACHE_DIR": str(cache),
        "MODE": mode,
    }
    script = cache.parent / "script.py"
    script.write_text(_SCRIPT)
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def test_the_function_is_asked_and_kernels_are_kept_under_it(tmp_path: Path) -> None:
    cache = tmp_path / "kernels"
    first = _run("count", cache)
    assert first["right"]
    assert first["calls"] > 0
    assert first["cache"]["missing"] >= 1
    again = _run("count", cache)
    assert again["right"]
    assert again["calls"] == 0
    assert again["cache"]["found"] >= 1
    # The description's own model has other keys.
    described = _run("described", cache)
    assert described["right"]
    assert described["cache"]["found"] == 0


@pytest.mark.parametrize(
    ("mode", "said"), [("broken", "KeyError: 'no such thing'"), ("negative", "a cost is a finite number")]
)
def test_faults_of_the_function_end_the_compilation(tmp_path: Path, mode: str, said: str) -> None:
    outcome = _run(mode, tmp_path / "kernels")
    assert said in outcome["error"]
    assert "set_cost_model" in outcome["error"]
    # Without the function the same program compiles.
    assert outcome["right"]


_IN_JAX_CACHE = """
import json, os
import act_pjrt, jax, jax.numpy as jnp, numpy as np
from jax._src import monitoring

hits = []
monitoring.register_event_listener(lambda event, **_: event.endswith("/cache_hits") and hits.append(event))
weight = int(os.environ["WEIGHT"])

def scaled(part):
    return weight * (part["trip"] * sum(map(scaled, part["body"])) if "loop" in part else 1)

def cost(code):
    return sum(map(scaled, code["program"]))

a = np.arange(-512, 512, dtype=np.int32).reshape(32, 32).astype(np.int8)
def product():
    jax.clear_caches()
    f = jax.jit(lambda x, y: jax.lax.dot(x, y, preferred_element_type=jnp.int32))
    assert (np.asarray(f(a, a)) == a.astype(np.int32) @ a.astype(np.int32)).all()
    return len(hits)
seen = [product()]
if weight:
    act_pjrt.set_cost_model(cost)
    seen.append(product())
    act_pjrt.set_cost_model(None)
    seen.append(product())
print(json.dumps(seen))
"""


def test_jax_keeps_programs_apart_by_the_function(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_IN_JAX_CACHE)

    def hits(weight: int) -> Any:
        process = python(
            script,
            platforms="act",
            target="gemmini",
            JAX_COMPILATION_CACHE_DIR=str(tmp_path / "programs"),
            JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
            WEIGHT=str(weight),
        )
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout.splitlines()[-1])

    assert hits(0) == [0]
    # Without the function the program is known; with it, it is not; afterwards it is again.
    assert hits(1) == [1, 1, 2]
    assert hits(1) == [1, 2, 3]
    # The function reads a number of its module: another one makes it another function.
    assert hits(2) == [1, 1, 2]


@pytest.mark.parametrize("result", ["float('nan')", "float('inf')", "'cheap'", "None", "[1]", "True"])
def test_what_is_no_cost_is_told(tmp_path: Path, result: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import act_pjrt, jax, jax.numpy as jnp, numpy as np\n"
        f"act_pjrt.set_cost_model(lambda code: {result})\n"
        "a = np.ones((16, 16), np.int8)\n"
        "try:\n"
        "    jax.jit(lambda a: jax.lax.dot(a, a, preferred_element_type=jnp.int32))(a)\n"
        "except jax.errors.JaxRuntimeError as error:\n"
        "    print(str(error).replace(chr(10), ' '))\n"
    )
    process = python(script, platforms="act", target="gemmini")
    assert process.returncode == 0, process.stderr
    assert "set_cost_model" in process.stdout
    assert "Error: " in process.stdout


def test_a_function_that_is_not_known_needs_a_name() -> None:
    code = (
        "import act_pjrt\n"
        "class Model:\n"
        "    weight = 3\n"
        "model = Model()\n"
        "try:\n"
        "    act_pjrt.set_cost_model(lambda code: model.weight)\n"
        "except ValueError as error:\n"
        "    print(error)\n"
        "act_pjrt.set_cost_model(lambda code: model.weight, fingerprint='weight 3')\n"
    )
    process = python("-c", code)
    assert process.returncode == 0, process.stderr
    assert "reads model" in process.stdout
    assert "fingerprint=" in process.stdout
