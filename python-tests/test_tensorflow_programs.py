"""The programs of tensorflow_programs.py: on act they give what they give on stock TensorFlow."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HERE, tensorflow_python

Results = dict[str, tuple[float, "list[np.ndarray[Any, Any]] | str"]]


def names() -> list[str]:
    """The programs, without importing TensorFlow."""
    tree = ast.parse((HERE / "tensorflow_programs.py").read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [function.name for function in functions if function.decorator_list]


def run(folder: Path, device: str) -> Results:
    """Runs all programs in a process of their own."""
    file = folder / "results.pickle"
    process = tensorflow_python(HERE / "run_tensorflow_programs.py", file, device, act=device == "ACT")
    assert process.returncode == 0, process.stdout[-500:] + process.stderr[-3000:]
    results: Results = pickle.loads(file.read_bytes())
    return results


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(tmp_path_factory.mktemp("stock"), "CPU")


@pytest.fixture(scope="module")
def act(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(tmp_path_factory.mktemp("act"), "ACT")


@pytest.mark.parametrize("name", names())
def test_results_are_those_of_stock_tensorflow(name: str, stock: Results, act: Results) -> None:
    tolerance, expected = stock[name]
    _, actual = act[name]
    assert not isinstance(expected, str), expected
    assert not isinstance(actual, str), actual
    assert len(actual) == len(expected) > 0
    for index, (got, wanted) in enumerate(zip(actual, expected, strict=True)):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), index
        if wanted.dtype.kind in "iubOS" or wanted.size == 0:
            assert np.array_equal(got, wanted), (index, got, wanted)
            continue
        wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
        error = np.max(np.abs(got.astype(wide) - wanted.astype(wide)))
        assert error <= tolerance * np.max(np.abs(wanted.astype(wide))), (index, error)


def test_every_program_was_run(stock: Results, act: Results) -> None:
    assert list(stock) == list(act) == names()
