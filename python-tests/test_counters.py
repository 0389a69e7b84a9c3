"""What the device did, as counted: of the last execution, and of each compiled program."""

from __future__ import annotations

import json
from math import ceil
from typing import Any

import pytest
from conftest import python

SCRIPT = """
import json, jax, jax.numpy as jnp, numpy as np, act_pjrt
assert act_pjrt.last_run() is None
def product(a, b): return jax.lax.dot(a, b, preferred_element_type=jnp.int32)
def doubled(a, b): return product(a, b) * 2
left, right = np.ones((40, 24), np.int8), np.ones((24, 56), np.int8)
compiled = [jax.jit(f).lower(left, right).compile() for f in (product, doubled)]
host = jax.jit(lambda a: a + 1).lower(left).compile()
for program, times in zip(reversed(compiled), (2, 3)):
    for _ in range(times):
        program(left, right).block_until_ready()
host(left).block_until_ready()
print(json.dumps({
    "last": act_pjrt.last_run(), "all": act_pjrt.executables(), "host": act_pjrt.runs_of(host),
    "each": [act_pjrt.runs_of(program) for program in compiled],
}))
"""


@pytest.fixture(scope="module")
def counted() -> dict[str, Any]:
    """What a process counted that ran one program three times and another one twice."""
    process = python("-c", SCRIPT, platforms="act", target="gemmini")
    assert process.returncode == 0, process.stderr
    found: dict[str, Any] = json.loads(process.stdout)
    return found


def matrix_instructions(instructions: dict[str, int]) -> int:
    """Products of one 16x16 block each."""
    return sum(count for name, count in instructions.items() if name.startswith("matmul"))


BLOCKS = ceil(40 / 16) * ceil(56 / 16) * ceil(24 / 16)


def test_each_program_is_counted_by_itself(counted: dict[str, Any]) -> None:
    assert [entry["module"] for entry in counted["each"]] == ["jit_product", "jit_doubled"]
    assert [entry["executions"] for entry in counted["each"]] == [3, 2]
    for entry in counted["each"]:
        assert matrix_instructions(entry["total"]["instructions"]) == entry["executions"] * BLOCKS
    assert counted["host"] is None
    assert counted["all"] == counted["each"]


def test_the_last_execution_is_counted_alone(counted: dict[str, Any]) -> None:
    total = counted["last"]["total"]
    assert matrix_instructions(total["instructions"]) == BLOCKS
    (kernel,) = counted["last"]["kernels"].values()
    assert kernel["runs"] == 1
    assert {name: kernel[name] for name in total} == total


def test_bytes_and_cycles_add_up(counted: dict[str, Any]) -> None:
    total = counted["last"]["total"]
    # Each operand is loaded at least once; the result, in s32, is stored once. It is the only thing that is.
    assert total["bytes"]["acc"] == {"dram": 40 * 56 * 4}
    assert total["bytes"]["dram"]["sp"] >= 40 * 24 + 24 * 56
    moved = sum(sum(to.values()) for to in total["bytes"].values())
    assert total["bytes_moved"] == moved + total["host_copy_bytes"]
    assert sum(total["unit_cycles"].values()) == total["cycles"] > 0
    assert set(total["unit_cycles"]) == {"load", "execute", "store"}
