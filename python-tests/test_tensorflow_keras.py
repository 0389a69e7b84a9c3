"""Keras models whose products run on accelerators: instructions are executed, predictions are right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HERE, tensorflow_python

Predictions = dict[str, np.ndarray[Any, Any]]
Counts = dict[str, dict[str, int]]


def predict(models: list[str], folder: Path, target: str | None) -> tuple[Predictions, Counts]:
    """What the models predict, and the instructions that were executed for each."""
    program = HERE / "tensorflow_keras.py"
    process = tensorflow_python(program, folder, *models, act=target is not None, target=target)
    assert process.returncode == 0, process.stdout[-500:] + process.stderr[-3000:]
    device, executed = json.loads(process.stdout.splitlines()[-1])
    assert device == ("ACT:0" if target else "CPU:0")
    return {model: np.load(folder / f"{model}.npy") for model in models}, executed


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Predictions:
    predictions, executed = predict(["int8", "bfloat16", "attention"], tmp_path_factory.mktemp("stock"), None)
    assert not any(executed.values())
    return predictions


@pytest.mark.parametrize(
    ("target", "models"),
    [
        # Tiles of 16: 2x2 of the first layer's 32x64 by 64x32, 2x1 of the second's 32x32 by 32x16.
        ("gemmini", {"int8": ("matmul", 6)}),
        # A row at a time by two numbers of each column; there are 64 rows in both layers.
        ("x86", {"int8": ("row_times_matrix_s8_2", 64)}),
        # The last of three layers is of float32. Attention projects query, key, value and result, with two
        # products in between.
        ("h_qkv", {"bfloat16": ("gemm", 2), "attention": ("gemm", 6)}),
        ("trainium", {"bfloat16": ("nc_matmul_bf16", 1)}),
    ],
)
def test_models_run_on_the_device(
    target: str, models: dict[str, tuple[str, int]], stock: Predictions, tmp_path: Path
) -> None:
    predictions, executed = predict(list(models), tmp_path, target)
    for model, (instruction, least) in models.items():
        assert executed[model].get(instruction, 0) >= least, (model, executed)
        got, wanted = predictions[model], stock[model]
        assert got.shape == wanted.shape
        tolerance = 1e-5 if model == "int8" else 2**-5
        assert np.max(np.abs(got - wanted)) <= tolerance * np.max(np.abs(wanted)), model
