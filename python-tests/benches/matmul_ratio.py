"""Jitted matmuls on the simulators beside the same programs on plain jaxlib CPU, in one run.

    python python-tests/benches/matmul_ratio.py [--target gemmini] [--size 512] [--rounds 30]

Both platforms live in one process per target and take turns, so that what else the machine does meets both.
Printed are medians and their ratio, and the most that the project claims for it, where it claims anything.
Results are compared before anything is timed, and what did not run on the device has no ratio but a reason.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """A product of two square matrices on a target."""

    target: str
    elem: str
    size: int
    # Type of the result.
    result: str
    # The most times plain CPU's time that the simulator may take, where that is claimed.
    claim: float | None = None


CASES = (
    Case("gemmini", "int8", 512, "int32", claim=3),
    Case("trainium", "bfloat16", 1024, "float32", claim=3),
    Case("trainium", "float32", 1024, "float32", claim=3),
    Case("gemmini_plus", "int8", 512, "int32"),
    Case("feather", "int8", 256, "int32"),
    Case("amx", "float32", 256, "float32"),
    Case("h_qkv", "bfloat16", 64, "bfloat16"),
    Case("x86", "float32", 256, "float32"),
)


def measure(case: Case, rounds: int) -> dict[str, Any]:
    """Median seconds per call on both platforms, in turns; or why the device did not run the program."""
    import act_pjrt
    import jax
    import jax.numpy as jnp
    import numpy as np

    shape = (case.size, case.size)
    random = np.random.default_rng(7)
    if case.elem == "int8":
        operands = [random.integers(-128, 128, shape).astype(np.int8) for _ in range(2)]
    else:
        operands = [np.asarray(random.uniform(-1, 1, shape), dtype=jnp.dtype(case.elem)) for _ in range(2)]

    def product(a: Any, b: Any) -> Any:
        return jnp.dot(a, b, preferred_element_type=jnp.dtype(case.result))

    def program(device: Any) -> Callable[[], Any]:
        placed = [jax.device_put(operand, device) for operand in operands]
        # The device is part of a jitted function's key: each platform compiles its own.
        jitted = jax.jit(product)
        return lambda: jitted(*placed).block_until_ready()

    programs = {"act": program(jax.devices("act")[0]), "cpu": program(jax.devices("cpu")[0])}
    answers = {name: np.asarray(run()) for name, run in programs.items()}
    hosted = [region["refusal"] for region in act_pjrt.regions() if region["where"] != "device"]
    if hosted or act_pjrt.last_run() is None:
        return {"refusal": "; ".join(hosted) or "nothing was offered to the device"}
    # Sums of `size` products, in another order.
    tolerance = 0 if case.result == "int32" else 1e-4 * case.size**0.5
    np.testing.assert_allclose(answers["act"], answers["cpu"], rtol=0, atol=tolerance)

    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, run in programs.items():
            begin = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def measure_apart(case: Case, rounds: int) -> dict[str, Any]:
    """As `measure`, in a process with the case's target."""
    environment = os.environ | {
        "JAX_PLATFORMS": "act,cpu",
        "ACT_TARGET": case.target,
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    request = json.dumps([case.target, case.elem, case.size, case.result])
    command = [sys.executable, __file__, "--measure", request, "--rounds", str(rounds)]
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    medians: dict[str, Any] = json.loads(process.stdout)
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", action="append", help="only this target (may be given several times)")
    parser.add_argument("--size", type=int, help="rows and columns, in place of each program's own")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.rounds < 1:
        parser.error("--rounds must be at least 1")
    if chosen.measure:
        print(json.dumps(measure(Case(*json.loads(chosen.measure)), chosen.rounds)))
        return
    known = {case.target for case in CASES}
    if unknown := set(chosen.target or []) - known:
        parser.error(f"no program for {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    print(f"{'target':<14}{'program':<26}{'simulator':>12}{'jaxlib CPU':>12}{'ratio':>8}")
    for case in CASES:
        if chosen.target and case.target not in chosen.target:
            continue
        size = chosen.size or case.size
        medians = measure_apart(Case(case.target, case.elem, size, case.result), chosen.rounds)
        program = f"{case.target:<14}{f'{size}x{size}x{size} {case.elem}':<26}"
        if refusal := medians.get("refusal"):
            print(f"{program} ran on the host: {refusal}", flush=True)
            continue
        claim = f"  (claimed: at most {case.claim:g})" if case.claim and size == case.size else ""
        act, cpu = (f"{1e3 * medians[platform]:.3f} ms" for platform in ("act", "cpu"))
        ratio = medians["act"] / medians["cpu"]
        print(f"{program}{act:>12}{cpu:>12}{ratio:>8.2f}{claim}", flush=True)


if __name__ == "__main__":
    main()
