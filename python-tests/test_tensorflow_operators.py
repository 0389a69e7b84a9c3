"""Operators of TensorFlow, one by one and for every element type: on act they give what they always gave."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HERE, tensorflow_python

PROGRAM = HERE / "tensorflow_operators.py"

Results = dict[str, Any]

# Relative to the largest magnitude of the reference.
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-10, "complex64": 2e-5}
TOLERANCES["complex128"] = TOLERANCES["float64"]


def run(folder: Path, device: str) -> Results:
    file = folder / "results.pickle"
    process = tensorflow_python(PROGRAM, file, act=device == "ACT")
    assert process.returncode == 0, process.stdout[-500:] + process.stderr[-3000:]
    where, results = pickle.loads(file.read_bytes())
    assert where.endswith(f"{device}:0")
    answered: Results = results
    return answered


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(tmp_path_factory.mktemp("stock"), "CPU")


@pytest.fixture(scope="module")
def act(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(tmp_path_factory.mktemp("act"), "ACT")


def difference(got: Any, wanted: Any) -> str | None:
    """What differs between an operator's results, if anything does."""
    if len(got) != len(wanted):
        return f"{len(got)} results instead of {len(wanted)}"
    for index, (one, other) in enumerate(zip(got, wanted, strict=True)):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"{index}: {one.dtype}{one.shape} instead of {other.dtype}{other.shape}"
        tolerance = TOLERANCES.get(one.dtype.name)
        if tolerance is None or other.size == 0:
            if not np.array_equal(one, other):
                return f"{index}: {one} instead of {other}"
            continue
        wide = np.complex128 if other.dtype.kind == "c" else np.float64
        one, other = one.astype(wide), other.astype(wide)
        finite = np.isfinite(other)
        if (
            not np.array_equal(one[~finite], other[~finite], equal_nan=True)
            or not np.isfinite(one[finite]).all()
        ):
            return f"{index}: {one} instead of {other}"
        error = np.max(np.abs(one[finite] - other[finite]), initial=0)
        if error > tolerance * np.max(np.abs(other[finite]), initial=0):
            return f"{index}: off by {error}: {one} instead of {other}"
    return None


def test_results_are_those_of_stock_tensorflow(stock: Results, act: Results) -> None:
    """What stock TensorFlow refuses may work on act, but not the other way round."""
    assert list(act) == list(stock)
    wrong = []
    for name, wanted in stock.items():
        got = act[name]
        if isinstance(wanted, str):
            continue
        reason = got if isinstance(got, str) else difference(got, wanted)
        if reason is not None:
            wrong.append(f"{name}: {reason}")
    assert not wrong, "\n".join(wrong[:20])


def test_nearly_all_operators_gave_something_to_compare(stock: Results) -> None:
    answered = sum(not isinstance(result, str) for result in stock.values())
    assert answered > 0.9 * len(stock) > 600
