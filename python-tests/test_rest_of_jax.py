"""Every program of programs.py gives on act what it gives on JAX's own CPU backend, for each target."""

from __future__ import annotations

import pickle
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HERE, python
from programs import PROGRAMS

# "" leaves ACT_TARGET unset.
TARGETS = ["", "gemmini", "h_qkv"]
RUNS = [("cpu", "")] + [("act", target) for target in TARGETS]
DEVICES = sorted({program.devices for program in PROGRAMS.values()})


class Run:
    """The results of all programs on one platform, computed when first asked for."""

    def __init__(self, folder: Path, platform: str, target: str) -> None:
        self.folder = folder
        self.process: dict[int, subprocess.CompletedProcess[str]] = {}
        for devices in DEVICES:
            self.process[devices] = python(
                HERE / "run_programs.py",
                folder,
                str(devices),
                platforms=platform,
                target=target or None,
                devices=devices,
                timeout=3600,
            )

    def result(self, name: str) -> list[np.ndarray[Any, Any]]:
        """What a program returned; fails the test where it raised or ended its process."""
        file = self.folder / f"{name}.pickle"
        process = self.process[PROGRAMS[name].devices]
        if not file.exists():
            ended = process.stdout.strip().rsplit("\n", 1)[-1]
            pytest.fail(
                f"no result: the process ended with {process.returncode} in {ended}\n{process.stderr[-3000:]}"
            )
        result = pickle.loads(file.read_bytes())
        if isinstance(result, str):
            pytest.fail(result)
        return result


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Run]:
    """One run per platform and target, shared by all tests."""
    folders = [tmp_path_factory.mktemp(platform + target) for platform, target in RUNS]
    with ThreadPoolExecutor(max_workers=2) as pool:
        return dict(zip(RUNS, pool.map(lambda run, folder: Run(folder, *run), RUNS, folders), strict=True))


def assert_agrees(actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], tolerance: float) -> None:
    """Same shapes and types; integers and booleans equal; floats equal up to tolerance times the largest."""
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if expected.dtype.kind in "biuSU":
        np.testing.assert_array_equal(actual, expected)
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    actual, expected = actual.astype(wide), expected.astype(wide)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(actual[~finite], expected[~finite])
    largest = np.max(np.abs(expected[finite]), initial=0)
    np.testing.assert_allclose(actual[finite], expected[finite], rtol=0, atol=tolerance * largest)
    zeros = expected == 0
    if wide is np.float64:
        np.testing.assert_array_equal(
            np.signbit(actual[zeros & (actual == 0)]), np.signbit(expected[zeros & (actual == 0)])
        )


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target or "host")
@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_cpu(name: str, target: str, runs: dict[tuple[str, str], Run]) -> None:
    expected = runs["cpu", ""].result(name)
    actual = runs["act", target].result(name)
    assert len(actual) == len(expected) > 0
    for mine, reference in zip(actual, expected, strict=True):
        assert_agrees(mine, reference, PROGRAMS[name].tolerance)
