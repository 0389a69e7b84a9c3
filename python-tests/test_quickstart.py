"""examples/quickstart.py, the script that ci/demo runs: on every target it gives what it gives on CPU."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HERE, python

# "" leaves ACT_TARGET unset.
TARGETS = [""]

# Runs the script's main() and keeps results, and what act says about the run where act is the platform.
RUNNER = """
import json, pickle, runpy, sys
import jax, numpy as np
script = runpy.run_path(sys.argv[1])
results = {name: np.asarray(value) for name, value in script["main"]().items()}
keys = jax.random.split(jax.random.key(1), 3)
q, k, v = (jax.random.normal(key, (64, 64)).astype("bfloat16") / 2 for key in keys)
results["in order"], results["swapped"] = (np.asarray(script["attention"](*a, v)) for a in ((q, k), (k, q)))
regions = []
if sys.argv[3] == "act":
    import act_pjrt
    assert all(map(act_pjrt.is_act, jax.devices()))
    regions = act_pjrt.regions()
with open(sys.argv[2], "wb") as file:
    pickle.dump({"results": results, "regions": regions}, file)
"""

# bfloat16 keeps 8 bits: an error of 2^-8 in each of the few roundings between the matmuls, relative to the
# largest result. Exchanging q and k changes results by far more (test_tolerance_is_tight).
BFLOAT16_TOLERANCE = 2**-6
FLOAT32_TOLERANCE = 1e-5


@dataclass
class Run:
    """What a run left: each named result, and act's regions."""

    results: dict[str, np.ndarray[Any, Any]]
    regions: list[dict[str, Any]]


def run(folder: Path, platform: str, target: str) -> Run:
    """Runs the script in a process of its own."""
    output = folder / "output.pickle"
    script = HERE / "examples" / "quickstart.py"
    process = python("-c", RUNNER, script, output, platform, platforms=platform, target=target or None)
    assert process.returncode == 0, process.stderr
    return Run(**pickle.loads(output.read_bytes()))


@pytest.fixture(scope="session")
def cpu(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The reference."""
    return run(tmp_path_factory.mktemp("cpu"), "cpu", "")


@pytest.fixture(scope="session", params=TARGETS, ids=lambda target: target or "host")
def act(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same on act, for one target after the other."""
    return run(tmp_path_factory.mktemp("act"), "act", request.param)


def close(actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> bool:
    """Within the tolerance of the type; integers exactly."""
    if expected.dtype.kind in "iu":
        return np.array_equal(actual, expected)
    bound = BFLOAT16_TOLERANCE if expected.dtype.name == "bfloat16" else FLOAT32_TOLERANCE
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    difference = np.abs(actual.astype(wide) - expected.astype(wide))
    return bool(np.all(difference <= bound * np.max(np.abs(expected.astype(wide)))))


def test_results_are_those_of_cpu(act: Run, cpu: Run) -> None:
    assert act.results.keys() == cpu.results.keys()
    assert {
        "mlp_input",
        "mlp_loop",
        "attention",
        "softmax_attention",
        "sort",
        "cholesky",
        "fft",
    } < cpu.results.keys()
    for name, expected in cpu.results.items():
        actual = act.results[name]
        assert actual.dtype == expected.dtype, name
        assert actual.shape == expected.shape, name
        assert close(actual, expected), name


def test_tolerance_is_tight(act: Run, cpu: Run) -> None:
    """A comparison that would not notice q and k exchanged would be none."""
    assert not close(act.results["swapped"], cpu.results["in order"])


def test_int8_results_use_their_range(cpu: Run) -> None:
    """Rounding and both saturations happen in the data, so that the comparison covers them."""
    loop = cpu.results["mlp_loop"]
    assert {-128, 127} < set(loop.flatten().tolist())
    assert np.mean(np.abs(loop.astype(int)) < 127) > 0.5
    assert np.any(cpu.results["mlp_input"] == 0)


def test_prints_what_ran_where() -> None:
    process = python("-m", "act_pjrt.report", HERE / "examples" / "quickstart.py", platforms="act")
    assert process.returncode == 0, process.stderr
    script, report = process.stdout.split("\nWhat ran where:\n")
    assert "mlp_loop" in script
    assert report.strip() == "no region was offered to a device: everything ran on the host"
