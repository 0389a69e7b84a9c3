"""examples/quickstart.py, the script that ci/demo runs: on every target it gives what it gives on CPU."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HERE, python

# "" leaves ACT_TARGET unset.
TARGETS = ["", "gemmini", "h_qkv"]

# Runs the script's main() and keeps results, and what act says about the run where act is the platform.
RUNNER = """
import json, pickle, runpy, sys
import jax, numpy as np
script = runpy.run_path(sys.argv[1])
results = {name: np.asarray(value) for name, value in script["main"]().items()}
keys = jax.random.split(jax.random.key(1), 3)
q, k, v = (jax.random.normal(key, (64, 64)).astype("bfloat16") / 2 for key in keys)
results["in order"], results["swapped"] = (np.asarray(script["attention"](*a, v)) for a in ((q, k), (k, q)))
regions, executed = [], {}
if sys.argv[3] == "act":
    import act_pjrt
    assert all(map(act_pjrt.is_act, jax.devices()))
    regions = act_pjrt.regions()
    x, w1, w2 = (np.ones(shape, np.int8) for shape in ((50, 72), (72, 96), (96, 96)))
    bias = np.ones(96, np.int32)
    calls = {
        "mlp_input": (x, w1, bias),
        "mlp_loop": (np.ones((50, 96), np.int8), w2, bias),
        "attention": (q, k, v),
        "softmax_attention": (q, k, v),
    }
    for name, arguments in calls.items():
        jax.block_until_ready(script[name](*arguments))
        last = act_pjrt.last_run()
        executed[name] = last["total"]["instructions"] if last else {}
with open(sys.argv[2], "wb") as file:
    pickle.dump({"results": results, "regions": regions, "executed": executed}, file)
"""

# bfloat16 keeps 8 bits: an error of 2^-8 in each of the few roundings between the matmuls, relative to the
# largest result. Exchanging q and k changes results by far more (test_tolerance_is_tight).
BFLOAT16_TOLERANCE = 2**-6
FLOAT32_TOLERANCE = 1e-5


@dataclass
class Run:
    """What a run left: each named result, act's regions, and instructions executed by each function."""

    results: dict[str, np.ndarray[Any, Any]]
    regions: list[dict[str, Any]]
    executed: dict[str, dict[str, int]]
    target: str = ""


def run(folder: Path, platform: str, target: str) -> Run:
    """Runs the script in a process of its own."""
    output = folder / "output.pickle"
    script = HERE / "examples" / "quickstart.py"
    process = python("-c", RUNNER, script, output, platform, platforms=platform, target=target or None)
    assert process.returncode == 0, process.stderr
    return Run(target=target, **pickle.loads(output.read_bytes()))


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


def matmuls(counts: dict[str, int]) -> int:
    """Executed matrix products, whether they overwrite or accumulate."""
    return sum(count for name, count in counts.items() if name.startswith("matmul"))


def test_int8_layers_run_on_gemmini(act: Run) -> None:
    """One matrix instruction per 16x16x16 block of the product, and the loop's layer once per iteration."""
    if act.target != "gemmini":
        assert matmuls(act.executed.get("mlp_input", {})) == 0
        return
    blocks = math.ceil(50 / 16) * math.ceil(96 / 16)
    assert matmuls(act.executed["mlp_input"]) == blocks * math.ceil(72 / 16)
    assert matmuls(act.executed["mlp_loop"]) == 4 * blocks * math.ceil(96 / 16)
    # Bias, relu, scale, rounding and saturation belong to the store: the host has nothing left to do.
    # A store takes one block or several side by side.
    for layer, store, times in (
        ("mlp_input", "mvout_acc_scaled_relu", 1),
        ("mlp_loop", "mvout_acc_scaled", 4),
    ):
        stores = {name: n for name, n in act.executed[layer].items() if name.startswith("mvout")}
        assert set(stores) <= {store, f"{store}_blocks"}, stores
        assert times * blocks / 4 <= sum(stores.values()) <= times * blocks


def test_attention_is_nine_instructions_of_h_qkv(act: Run) -> None:
    """The assembly that the ACT paper gives for its running example."""
    if act.target != "h_qkv":
        assert "gemm" not in act.executed.get("attention", {})
        return
    assert act.executed["attention"] == {
        "load_rm": 2,
        "load_cm": 1,
        "gemm": 2,
        "softmax": 1,
        "mov": 2,
        "store_rm": 1,
    }


def test_row_maximum_keeps_the_softmax_on_the_host(act: Run) -> None:
    """The library's softmax has an operator that h_qkv lacks; the reason is kept."""
    if act.target != "h_qkv":
        return
    assert "softmax" not in act.executed["softmax_attention"]
    assert any("maximum" in json.dumps(region) for region in act.regions)


def test_everything_else_has_its_reason(act: Run) -> None:
    for region in act.regions:
        if region["where"] == "host":
            assert region["refusal"], region


def test_prints_what_ran_where() -> None:
    process = python("-m", "act_pjrt.report", HERE / "examples" / "quickstart.py", platforms="act")
    assert process.returncode == 0, process.stderr
    script, report = process.stdout.split("\nWhat ran where:\n")
    assert "mlp_loop" in script
    assert report.strip() == "no region was offered to a device: everything ran on the host"


@pytest.mark.parametrize(("target", "instruction"), [("gemmini", "matmul"), ("h_qkv", "gemm")])
def test_reports_regions_of_a_target(target: str, instruction: str) -> None:
    process = python(
        "-m", "act_pjrt.report", HERE / "examples" / "quickstart.py", platforms="act", target=target
    )
    assert process.returncode == 0, process.stderr
    assert instruction in process.stdout.split("\nWhat ran where:\n")[1]
