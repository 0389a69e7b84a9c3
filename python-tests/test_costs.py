"""Costs that act counts from its own programs, held against XLA's analysis of the same optimized modules."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import python

COUNT = """
import json
import jax, jax.numpy as jnp
from jax.experimental import serialize_executable
from jaxlib import _jax, xla_client

ones = jnp.ones
programs = {
    "product": (lambda a, b: a @ b, ones((32, 48)), ones((48, 16))),
    "elementwise": (lambda a: jnp.exp(a) * a + 1, ones((32, 48))),
    "sum": (lambda a: a.sum(0), ones((32, 48))),
    "softmax": (lambda a: jax.nn.softmax(a @ a.T), ones((32, 48))),
    "convolution": (
        lambda a, b: jax.lax.conv_general_dilated(a, b, (2, 2), "SAME", feature_group_count=2),
        ones((2, 8, 16, 16)), ones((4, 4, 3, 3))),
    "transposed_convolution": (
        lambda a, b: jax.lax.conv_transpose(a, b, (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")),
        ones((2, 8, 9, 9)), ones((4, 8, 3, 3))),
    "pool": (
        lambda a: jax.lax.reduce_window(a, -jnp.inf, jax.lax.max, (1, 2, 2), (1, 2, 2), "VALID"),
        ones((8, 16, 16))),
    "sort": (jnp.sort, ones((32, 48))),
    "fft": (jnp.fft.fft, ones((8, 32))),
    "random": (lambda a: jax.random.uniform(jax.random.key(0), a.shape) + a, ones((8, 8))),
    "parts": (
        lambda a, i: (jax.lax.dynamic_slice(a, (i, i), (4, 4)), a.at[i, 3].set(1), a[jnp.array([3, 1])], a.T),
        ones((32, 48)), 2),
    "scatter": (lambda a, i: a.at[i].add(2), ones((32, 48)), jnp.arange(5)),
    "several_results": (lambda a: (a.sum(1), a.argmax(0), jnp.sin(a)), ones((32, 48))),
    "branches": (
        lambda a, i: jax.lax.switch(i, [jnp.sin, lambda x: x @ x, lambda x: x.at[0].set(3.0)], a),
        ones((16, 16)), 1),
    "scan": (
        lambda a: jax.lax.scan(lambda c, _: (jnp.tanh(c @ c), None), a, None, length=5)[0], ones((16, 16))),
    "gradient": (jax.grad(lambda w, x: jnp.tanh(x @ w).sum()), ones((32, 48)), ones((8, 32))),
}
cpu = xla_client.make_cpu_client()
found = {}
for name, (function, *operands) in programs.items():
    lowered = jax.jit(function).lower(*operands)
    compiled = lowered.compile()
    module = compiled.runtime_executable().hlo_modules()[0]
    reference = _jax.hlo_module_cost_analysis(cpu, module)
    found[name] = (compiled.cost_analysis(), reference, lowered.cost_analysis())
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def counted() -> dict[str, list[dict[str, float]]]:
    process = python("-c", COUNT, platforms="act")
    assert process.returncode == 0, process.stderr
    found: dict[str, list[dict[str, float]]] = json.loads(process.stdout)
    return found


@pytest.mark.parametrize("key", ["flops", "transcendentals"])
def test_operations_are_those_that_xla_counts(key: str, counted: dict[str, Any]) -> None:
    ours = {name: costs.get(key, 0) for name, (costs, _, _) in counted.items()}
    assert ours == {name: costs.get(key, 0) for name, (_, costs, _) in counted.items()}
    assert sum(ours.values()) > 0


# Bytes; versions of XLA differ in the size of the tables of pointers that tuples are.
TABLES = 64


def test_bytes_are_those_that_xla_counts(counted: dict[str, Any]) -> None:
    for name, (ours, reference, _) in counted.items():
        assert ours["bytes accessed"] == pytest.approx(reference["bytes accessed"], abs=TABLES), name


def test_operands_and_results_are_those_that_xla_counts(counted: dict[str, Any]) -> None:
    """Bytes and utilization by the operands' places, summed up over instructions."""
    for name, (ours, reference, _) in counted.items():
        keys = {key for key in (*ours, *reference) if "{" in key}
        assert len(keys) > 2, name
        for key in keys:
            tables = TABLES if key == "bytes accessedout{}" else 0
            assert ours.get(key, 0) == pytest.approx(reference.get(key, 0), rel=1e-6, abs=tables), (name, key)


def test_lowered_programs_have_costs(counted: dict[str, Any]) -> None:
    assert counted["product"][2]["flops"] == 2 * 32 * 48 * 16


ON_DEVICE = """
import json, sys
import jax, jax.numpy as jnp
from jax.experimental import serialize_executable

a, b = jnp.ones((32, 48), jnp.int8), jnp.ones((48, 16), jnp.int8)
product = jax.jit(lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32))
compiled = product.lower(a, b).compile()
loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
print(json.dumps([compiled.cost_analysis(), loaded.cost_analysis()]))
loaded(a, b).block_until_ready()
import act_pjrt
print(json.dumps([act_pjrt.last_run()["total"], [entry["module"] for entry in act_pjrt.executables()]]))
"""


def test_the_device_is_part_of_the_costs() -> None:
    """What the analysis says beforehand the counters say afterwards; also of a program that was stored."""
    process = python("-c", ON_DEVICE, platforms="act", target="gemmini")
    assert process.returncode == 0, process.stderr
    costs, executed = map(json.loads, process.stdout.splitlines())
    compiled, loaded = costs
    total, modules = executed
    # As XLA counts the product: what runs where is no part of the work.
    assert compiled["flops"] == 2 * 32 * 48 * 16
    assert compiled["act kernels"] == 1
    assert compiled["act modelled cycles"] == total["modelled_cycles"]
    assert compiled["act bytes moved"] == total["bytes_moved"] - total["host_copy_bytes"]
    assert compiled["act instructions"] == sum(total["instructions"].values())
    for instruction, count in total["instructions"].items():
        assert compiled[f"act instructions {instruction}"] == count
    assert loaded == compiled
    assert modules == ["jit__lambda", "jit__lambda"]
