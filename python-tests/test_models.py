"""The models of models.registry on targets that have their types, against JAX's own CPU backend.

``ACT_EVERY_MODEL=1 python -m pytest python-tests/test_models.py`` also runs those that take minutes.
"""

from __future__ import annotations

import os
import pickle
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HERE, python
from models.registry import VARIANTS

# The smallest of every model.
FLOATS = [
    "mlp_{}_8x32x64",
    "mlp_{}_17x33x65_train",
    "encoder_{}_1x16x32x1",
    "encoder_{}_1x16x32x1_train",
    "decoder_{}_1x16x32x1",
    "decode_{}_4x32x32",
    "lstm_{}_5x8x16x32",
    "gru_{}_5x8x16x32",
    "experts_{}_16x32x64x4",
    "cnn_{}_2x8x8",
    "cnn_{}_1x11x16_train",
    "resnet_{}_1x11x16",
    "separable_{}_2x8x8",
]
F32 = [name.format("f32") for name in FLOATS]
BF16 = [name.format("bf16") for name in FLOATS]
INT8 = [
    "int8_shifted_16x32x64",
    "int8_shifted_13x70x33",
    "int8_scaled_13x70x33",
    "int8_convolutions_1x8x8",
    "int8_convolutions_2x9x16",
]
NAMES = {"x86": F32[:2], "trainium": F32 + BF16[:3], "gemmini": INT8}
if os.environ.get("ACT_EVERY_MODEL"):
    NAMES = {"x86": F32 + INT8, "trainium": F32 + BF16, "amx": BF16 + INT8, "gemmini": INT8}
CASES = [(target, name) for target, names in NAMES.items() for name in names]


class Run:
    """The results of some models on one platform."""

    def __init__(self, folder: Path, platform: str, target: str, names: list[str]) -> None:
        self.folder = folder
        self.process: subprocess.CompletedProcess[str] = python(
            HERE / "run_models.py", folder, *names, platforms=platform, target=target or None, timeout=3600
        )

    def result(self, name: str) -> list[np.ndarray[Any, Any]]:
        file = self.folder / f"{name}.pickle"
        if not file.exists():
            pytest.fail(f"no result: {self.process.returncode}\n{self.process.stderr[-3000:]}")
        result = pickle.loads(file.read_bytes())
        if isinstance(result, str):
            pytest.fail(result)
        return result


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """One run per target, and one on the CPU, named ""."""
    every = sorted({name for names in NAMES.values() for name in names})
    wanted = [("", "cpu", every)] + [(target, "act", names) for target, names in NAMES.items()]

    def run(case: tuple[str, str, list[str]]) -> tuple[str, Run]:
        target, platform, names = case
        return target, Run(tmp_path_factory.mktemp(platform + target), platform, target, names)

    with ThreadPoolExecutor(max_workers=2) as pool:
        return dict(pool.map(run, wanted))


@pytest.mark.parametrize(("target", "name"), CASES)
def test_agrees_with_cpu(target: str, name: str, runs: dict[str, Run]) -> None:
    expected = runs[""].result(name)
    actual = runs[target].result(name)
    assert len(actual) == len(expected) > 0
    for mine, reference in zip(actual, expected, strict=True):
        assert mine.shape == reference.shape
        assert mine.dtype == reference.dtype
        if reference.dtype.kind in "iub":
            np.testing.assert_array_equal(mine, reference)
            continue
        wide, exact = mine.astype(np.float64), reference.astype(np.float64)
        largest = np.max(np.abs(exact), initial=0)
        np.testing.assert_allclose(wide, exact, rtol=0, atol=VARIANTS[name].tolerance * largest)
