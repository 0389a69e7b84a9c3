"""What is offered to the device: products alone, or everything that computes on arrays (ACT_OFFLOAD)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import HERE, python

LANES = HERE.parent / "generator" / "tests" / "lanes.taidl"

# Prints whether act and the host agree bit for bit, what ran on the device, and what became of every region.
PROGRAM = """
import json, sys
import jax, jax.numpy as jnp, numpy as np, act_pjrt
def polynomial(x, y):
    return x * y + x * x
def with_a_root(x, y):
    return jnp.sqrt(x * y + x) * y + y
def counted(x, y):
    return jax.lax.fori_loop(0, 3, lambda i, v: v * y + x, x)
def product(x, y):
    return jnp.tanh(x @ y.T) + 1
function = locals()[sys.argv[1]]
shape = json.loads(sys.argv[2])
random = np.random.default_rng(0)
x, y = (random.integers(0, 9, shape).astype(np.float32) for _ in range(2))
result = np.asarray(jax.jit(function)(x, y))
with jax.default_device(jax.devices("cpu")[0]):
    expected = np.asarray(jax.jit(function)(x, y))
last = act_pjrt.last_run()
print(json.dumps({
    "equal": bool((result == expected).all()),
    "close": bool(np.allclose(result, expected, rtol=1e-5)),
    "executed": last["total"]["instructions"] if last else {},
    "regions": [[region["where"], region["op"]] for region in act_pjrt.regions()],
}))
"""


def run(
    function: str, shape: list[int], tmp_path: Path, target: str | Path = LANES, **env: str
) -> dict[str, object]:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = python(script, function, json.dumps(shape), platforms="act,cpu", target=str(target), **env)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("shape", [[64], [24, 40], [13], [3, 7]])
def test_a_target_without_products_computes_what_it_can(shape: list[int], tmp_path: Path) -> None:
    found = run("polynomial", shape, tmp_path)
    assert found["equal"]
    executed = found["executed"]
    assert isinstance(executed, dict)
    elements = 1
    for size in shape:
        elements *= size
    # Two products of eight lanes at a time, at least.
    assert executed["vmul"] >= 2 * -(-elements // 8)


def test_what_it_lacks_is_the_hosts(tmp_path: Path) -> None:
    found = run("with_a_root", [32], tmp_path)
    assert found["close"]
    regions = found["regions"]
    assert isinstance(regions, list)
    assert ["host", "sqrt"] in regions
    assert sum(where == "device" for where, _ in regions) == 2


def test_loops_count_on_the_host_and_compute_on_the_device(tmp_path: Path) -> None:
    # Large enough for XLA not to make one function of the loop's body.
    found = run("counted", [4096], tmp_path)
    assert found["equal"]
    executed = found["executed"]
    assert isinstance(executed, dict)
    assert executed["vmul"] == 3 * 4096 // 8


def test_everything_is_offered_where_that_is_said(tmp_path: Path) -> None:
    # A description with products gets those alone, unless it is told otherwise.
    assert run("polynomial", [64], tmp_path, target="x86")["regions"] == []
    found = run("polynomial", [64], tmp_path, target="x86", ACT_OFFLOAD="all")
    assert found["close"]
    assert found["executed"]
    assert run("polynomial", [64], tmp_path, ACT_OFFLOAD="products")["regions"] == []
    found = run("product", [16, 16], tmp_path, target="x86", ACT_OFFLOAD="all")
    assert found["close"]
    assert ["device", "dot"] in found["regions"]  # type: ignore[operator]


def test_another_word_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import jax; jax.devices()")
    done = python(script, platforms="act", ACT_OFFLOAD="some")
    assert done.returncode != 0
    assert 'option offload (ACT_OFFLOAD): "some" is not one of auto, products, all' in done.stderr


def test_products_of_a_type_that_no_instruction_sums_are_not_searched_for(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import json, jax, jax.numpy as jnp, act_pjrt\n"
        "x = jnp.ones((24, 40), jnp.float32)\n"
        "jax.jit(lambda x: jnp.tanh(x @ x.T) @ x)(x).block_until_ready()\n"
        "keys = 'where', 'op', 'attempts', 'refusal'\n"
        "print(json.dumps([[r[k] for k in keys] for r in act_pjrt.regions()]))\n"
    )
    done = python(script, platforms="act", target="gemmini")
    assert done.returncode == 0, done.stderr
    refused = json.loads(done.stdout)
    assert [found[:3] for found in refused] == [["host", "dot", []]] * 2
    reason = "the target rules it out: no instruction of gemmini computes dot (f32[24,{}])"
    assert [found[3] for found in refused] == [reason.format(24), reason.format(40)]
