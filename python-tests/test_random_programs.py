"""Programs drawn at random against JAX's own CPU backend: integers bit for bit, floats within roundings.

``ACT_RANDOM_PROGRAMS=FIRST:COUNT`` takes other and more programs than CI does.
"""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HERE, python

CASES = [("gemmini", "int8"), ("trainium", "f32"), ("trainium", "bf16"), ("x86", "int8"), ("h_qkv", "bf16")]
FIRST, COUNT = (int(part) for part in os.environ.get("ACT_RANDOM_PROGRAMS", "0:12").split(":"))
# Of the largest magnitude of a result: sums in another order; bf16 is rounded after every operation.
TOLERANCE = {"f32": 2e-5, "bf16": 2e-2}

Outcome = tuple[str, list[np.ndarray] | str]


def run(folder: Path, platform: str, target: str, elem: str) -> dict[str, Any]:
    file = folder / f"{platform}{target}{elem}.pickle"
    arguments = [HERE / "random_programs.py", file, elem, str(FIRST), str(COUNT)]
    process = python(*arguments, platforms=platform, target=target or None, timeout=60 + 30 * COUNT)
    assert file.exists(), process.stderr[-3000:]
    loaded: dict[str, Any] = pickle.loads(file.read_bytes())
    return loaded


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, Outcome]]:
    folder = tmp_path_factory.mktemp("cpu")
    return {elem: run(folder, "cpu", "", elem)["results"] for elem in sorted({elem for _, elem in CASES})}


def distance(mine: np.ndarray, reference: np.ndarray) -> float:
    """The largest difference, of the largest finite magnitude; infinite where other elements are finite."""
    wide, exact = mine.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(exact)
    if not np.array_equal(finite, np.isfinite(wide)):
        return float("inf")
    largest = float(np.max(np.abs(exact[finite]), initial=0.0))
    return float(np.max(np.abs(wide - exact)[finite], initial=0.0)) / (largest or 1.0)


@pytest.mark.parametrize(("target", "elem"), CASES)
def test_agree(
    target: str, elem: str, expected: dict[str, dict[int, Outcome]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    outcome = run(tmp_path_factory.mktemp(target), "act", target, elem)
    for seed, (text, mine) in outcome["results"].items():
        same_text, reference = expected[elem][seed]
        told = f"{target} {elem} seed {seed}\n{text}"
        assert text == same_text, told
        if isinstance(reference, str):
            # What XLA's CPU backend cannot compile itself.
            continue
        assert not isinstance(mine, str), f"{told}\n{mine}"
        for one, other in zip(mine, reference, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape), told
            if other.dtype.kind in "biu":
                np.testing.assert_array_equal(one, other, err_msg=told)
            else:
                assert distance(one, other) <= TOLERANCE[elem], told
    assert any(region["where"] == "device" for region in json.loads(outcome["regions"]))
