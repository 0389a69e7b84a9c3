"""Random convolutions against JAX's own CPU backend: integers bit for bit, floats within roundings."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HERE, python
from convolutions import COUNT, draw

TARGETS = {"gemmini": ["int8"], "trainium": ["f32", "bf16"], "x86": ["f32", "int8"]}
CASES = [(target, name) for target, names in TARGETS.items() for name in names]
# Sums in another order; a result in bf16 is rounded once more.
TOLERANCE = {"f32": 1e-5, "bf16": 1e-2}


def outcome(folder: Path, platform: str, target: str, names: list[str]) -> dict[str, Any]:
    file = folder / f"{platform}{target}.pickle"
    script = HERE / "convolutions.py"
    process = python(script, file, *names, platforms=platform, target=target or None, timeout=3600)
    assert file.exists(), process.stderr[-3000:]
    loaded: dict[str, Any] = pickle.loads(file.read_bytes())
    return loaded


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Any]:
    folder = tmp_path_factory.mktemp("cpu")
    results: dict[Any, Any] = outcome(folder, "cpu", "", ["int8", "f32", "bf16"])["results"]
    return results


@pytest.fixture(scope="session", params=TARGETS)
def actual(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, Any]]:
    target: str = request.param
    return target, outcome(tmp_path_factory.mktemp(target), "act", target, TARGETS[target])


def test_agree(actual: tuple[str, dict[str, Any]], expected: dict[Any, Any]) -> None:
    target, run = actual
    for (name, number), mine in run["results"].items():
        reference = expected[name, number]
        told = f"{target} {name} {number}: {draw(number)}"
        assert mine.dtype == reference.dtype, told
        assert mine.shape == reference.shape, told
        if name == "int8":
            np.testing.assert_array_equal(mine, reference, err_msg=told)
            continue
        wide, exact = mine.astype(np.float64), reference.astype(np.float64)
        atol = TOLERANCE[name] * np.max(np.abs(exact), initial=0)
        np.testing.assert_allclose(wide, exact, rtol=0, atol=atol, err_msg=told)


def test_most_run_on_the_device(actual: tuple[str, dict[str, Any]]) -> None:
    target, run = actual
    regions = json.loads(run["regions"])
    device = [region for region in regions if region["where"] == "device"]
    assert len(device) >= 0.8 * COUNT * len(TARGETS[target]), [r for r in regions if r["where"] != "device"]
