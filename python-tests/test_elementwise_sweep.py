"""Every elementwise operation and element type gives on act what jaxlib's CPU backend gives.

The XLA library that act carries is a binary that others built: it is trusted as far as it is tested. (Its own
vectorised atan is wrong, for one; act rewrites it.)
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import HERE, python
from elementwise import ALL, COMPLEX, FLOATS, SIZES

Results = dict[str, np.ndarray[Any, Any]]

# Units in the last place by which results may differ: two builds of XLA approximate some functions apart.
DEFAULT_ULPS = 2.0
ULPS = {
    ("float64", "atanh"): 128.0,
    ("float64", "erf_inv"): 32.0,
    ("complex64", "tan"): 4.0,
    ("complex64", "tanh"): 4.0,
    ("complex128", "log"): 64.0,
    ("complex128", "tan"): 4.0,
    ("complex128", "tanh"): 4.0,
    # Rewritten as atan2(2x, 2).
    ("float32", "atan"): 4.0,
    ("float64", "atan"): 4.0,
}

# Denormal results are zero on act: the rewrite doubles its argument, and XLA's CPU backend flushes denormals
# in every product. (jaxlib's atan hands a denormal argument through without computing with it.)
FLUSHED = {("float64", "atan")}


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The results of both platforms."""
    result = {platform: tmp_path_factory.mktemp(platform) for platform in ("cpu", "act")}

    def run(platform: str) -> None:
        process = python(HERE / "elementwise.py", result[platform], platforms=platform, timeout=3600)
        assert process.returncode == 0, process.stderr[-3000:]

    # Most of the time goes into compiling, one kernel after the other.
    with ThreadPoolExecutor() as pool:
        list(pool.map(run, result))
    return result


def ulps(actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """The largest difference in units of the expected value's last place; infinite where one is infinite."""
    info = ml_dtypes.finfo(expected.dtype)
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    x, y = actual.astype(wide), expected.astype(wide)
    finite = np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return float("inf")
    last_place = np.maximum(np.abs(y[finite]) * float(info.eps), float(info.smallest_subnormal))
    return float(np.max(np.abs(x[finite] - y[finite]) / last_place, initial=0))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ALL)
def test_agrees_with_cpu(dtype: str, n: int, folders: dict[str, Path]) -> None:
    cpu, act = (
        pickle.loads((folders[platform] / f"{dtype}-{n}.pickle").read_bytes()) for platform in ("cpu", "act")
    )
    assert cpu.keys() == act.keys()
    assert len(cpu) > 5
    wrong = []
    for name, expected in cpu.items():
        actual = act[name]
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape) == (expected.dtype, (n,))
        if expected.dtype.name in (*FLOATS, *COMPLEX):
            if (dtype, name) in FLUSHED:
                expected = np.where(np.abs(expected) < np.finfo(dtype).tiny, 0.0, expected)
            difference, bound = ulps(actual, expected), ULPS.get((dtype, name), DEFAULT_ULPS)
            if not difference <= bound:
                wrong.append(f"{name}: {difference:.3g} ulps, {bound} allowed")
        elif not np.array_equal(actual, expected):
            wrong.append(f"{name}: {np.count_nonzero(actual != expected)} of {n} differ")
    assert not wrong, "\n".join(wrong)
