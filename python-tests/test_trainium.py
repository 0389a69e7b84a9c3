"""Matrix products on trainium: tiles of 128x128x512, long sums, ragged edges, narrow floats."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import python

SCRIPT = """
import itertools, pickle, sys
import jax, jax.numpy as jnp, numpy as np
random, results = np.random.default_rng(0), {}
ELEMENTS = "float32", "bfloat16", "float16"
for element, m, k, n in itertools.product(ELEMENTS, (1, 129), (1, 127, 300), (1, 513)):
    left, right = (random.standard_normal(shape).astype(jnp.dtype(element)) for shape in ((m, k), (k, n)))
    results[element, m, k, n] = np.asarray(jax.jit(jnp.matmul)(left, right)).astype(np.float64)
regions = []
if sys.argv[2] == "act":
    import act_pjrt
    regions = act_pjrt.regions()
with open(sys.argv[1], "wb") as file:
    pickle.dump((results, regions), file)
"""

Results = dict[tuple[str, int, int, int], np.ndarray[Any, Any]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Results, list[dict[str, Any]]]:
    """Results on XLA's CPU backend, on trainium, and trainium's regions."""
    found = []
    for platform in ("cpu", "act"):
        output: Path = tmp_path_factory.mktemp(platform) / "output.pickle"
        process = python("-c", SCRIPT, output, platform, platforms=platform, target="trainium")
        assert process.returncode == 0, process.stderr
        found.append(pickle.loads(output.read_bytes()))
    return found[0][0], found[1][0], found[1][1]


def test_products_run_on_the_device(runs: tuple[Results, Results, list[dict[str, Any]]]) -> None:
    """Nothing but products of one element, which XLA computes as a multiplication, may stay behind."""
    expected, _, regions = runs
    assert all(region["where"] == "device" for region in regions), regions
    assert len(regions) >= sum(m > 1 and k > 1 and n > 1 for _, m, k, n in expected)


@pytest.mark.parametrize("element", ["float32", "bfloat16", "float16"])
def test_sums_are_rounded_once(runs: tuple[Results, Results, list[dict[str, Any]]], element: str) -> None:
    """Sums may be taken in another order, in f32: hardly a narrow result differs, and by one rounding.

    A sum whose parts are rounded to bfloat16 one by one differs from XLA's in more than half of its elements.
    """
    narrow = {"float32": None, "bfloat16": 2.0**-8, "float16": 2.0**-11}[element]
    for shape, expected in runs[0].items():
        if shape[0] != element:
            continue
        found = runs[1][shape]
        scale = np.abs(expected).max()
        if narrow is None:
            assert np.abs(found - expected).max() <= 4e-6 * scale, shape
        else:
            differing = found != expected
            assert differing.mean() <= 0.01, shape
            assert (np.abs(found - expected) <= 2 * narrow * np.maximum(np.abs(expected), 1e-2)).all(), shape


RECURRENCE = """
import jax, jax.numpy as jnp, numpy as np
random = np.random.default_rng(0)
state, weights = (random.uniform(-2, 2, shape).astype(jnp.bfloat16) for shape in ((16, 65), (65, 65)))
step = lambda state, _: (jnp.tanh(state @ weights), None)
found = np.asarray(jax.jit(lambda state: jax.lax.scan(step, state, length=3)[0])(state)).astype(np.float64)

def scan(rounded_between):
    now = state.astype(np.float64)
    for _ in range(3):
        product = now @ weights.astype(np.float64)
        if rounded_between:
            product = product.astype(np.float32).astype(jnp.bfloat16).astype(np.float64)
        now = np.tanh(product).astype(jnp.bfloat16).astype(np.float64)
    return now

print([int((found != scan(rounded_between)).sum()) for rounded_between in (True, False)])
"""


def test_a_rounding_between_operators_is_left_out_or_kept_as_the_policy_says() -> None:
    """A difference of one rounding grows in a recurrence; arithmetic in float64 tells which one it is."""
    runs = {"cpu": python("-c", RECURRENCE, platforms="cpu")}
    for numerics in ("xla", "exact"):
        runs[numerics] = python("-c", RECURRENCE, platforms="act", target="trainium", ACT_NUMERICS=numerics)
    differing = {name: run.stdout.strip() for name, run in runs.items()}
    assert differing == {"cpu": "[0, 130]", "exact": "[0, 130]", "xla": "[130, 0]"}, [
        run.stderr for run in runs.values()
    ]
