"""What act costs where it has nothing to do: beside the XLA library it runs on, loaded without it.

    python python-tests/benches/overhead.py [--target gemmini] [--rounds 20]

Three processes take turns: act; the carried XLA library alone, as a plugin of its own; and jaxlib's CPU
backend, for comparison. Measured are a small call, a program without products, and compiling that program.
Printed are medians, act's distance from XLA alone, and the most that the project claims for it.
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
from pathlib import Path
from typing import IO, Any

# Calls in a row that one measurement of the small call is the mean of.
CALLS = 2000

MEASURES = ("small call", "program", "compile")


def measure_here(rounds: IO[str]) -> None:
    """Measures on JAX_PLATFORMS whatever is asked for, line by line; answers in seconds."""
    import jax
    import jax.numpy as jnp

    small = jax.jit(lambda x: x + 1)
    one = jnp.zeros(8)

    def program(x: Any, shift: float) -> Any:
        for _ in range(4):
            x = jnp.sort(jnp.tanh(x) * x + shift, axis=0)
            x = x - x.mean(axis=1, keepdims=True)
        return x.sum()

    matrix = jnp.arange(512.0 * 512).reshape(512, 512) / 512**2
    compiled = jax.jit(program, static_argnums=1).lower(matrix, 0.5).compile()

    def calls() -> None:
        for _ in range(CALLS):
            result = small(one)
        result.block_until_ready()

    fresh = iter(range(1, 1_000_000))
    lowered: list[Any] = []
    work: dict[str, Callable[[], object]] = {
        "small call": calls,
        "program": lambda: compiled(matrix).block_until_ready(),
        "compile": lambda: lowered.pop().compile(),
    }
    for line in rounds:
        name = line.strip()
        if name == "compile":
            # Another constant, another program: nothing is found in a cache.
            lowered.append(jax.jit(program, static_argnums=1).lower(matrix, next(fresh) / 7))
        begin = time.perf_counter()
        work[name]()
        seconds = time.perf_counter() - begin
        print(seconds / CALLS if name == "small call" else seconds, flush=True)


@dataclass(frozen=True)
class Worker:
    """A process that measures on one platform."""

    name: str
    process: subprocess.Popen[str]

    def ask(self, measure: str) -> float:
        """Seconds of one measurement."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(measure + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name} has ended: {self.process.wait()}")
        return float(answer)


def start(name: str, target: str | None) -> Worker:
    """The process of a platform: act, xla (the carried library alone) or cpu (jaxlib)."""
    import act_pjrt

    env = {key: value for key, value in os.environ.items() if not key.startswith(("JAX_", "ACT_"))}
    env |= {"JAX_PLATFORMS": name, "TF_CPP_MIN_LOG_LEVEL": "3", "ACT_CACHE_DIR": "off"}
    command = [sys.executable, __file__, "--worker"]
    if name == "xla":
        library = Path(act_pjrt.library_path()).parent / "xla" / "pjrt_c_api_cpu_plugin.so"
        command += ["--library", str(library)]
    elif name == "act" and target:
        env["ACT_TARGET"] = target
    process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return Worker(name, process)


def measure(target: str | None, rounds: int) -> dict[str, dict[str, float]]:
    """Median seconds by measure and platform."""
    workers = [start(name, target) for name in ("act", "xla", "cpu")]
    found: dict[str, dict[str, list[float]]] = {m: {w.name: [] for w in workers} for m in MEASURES}
    try:
        for kind in MEASURES:
            # The first one warms up.
            for number in range(rounds + 1):
                # In turns, and not always in the same order.
                for worker in workers if number % 2 else workers[::-1]:
                    seconds = worker.ask(kind)
                    if number:
                        found[kind][worker.name].append(seconds)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()
    return {
        kind: {name: statistics.median(times) for name, times in of_kind.items()}
        for kind, of_kind in found.items()
    }


def claims(kind: str, act: float, xla: float) -> str:
    """How far act is from XLA alone, and what is claimed."""
    if kind == "small call":
        return f"{(act - xla) * 1e6:+.2f} us (claimed: at most +3 us)"
    if kind == "program":
        return f"x {act / xla:.3f} (claimed: at most x 1.03)"
    claim = max(3e-3, 0.05 * xla)
    return f"{(act - xla) * 1e3:+.2f} ms (claimed: at most +{claim * 1e3:.2f} ms)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", help="a target; none: everything on the host")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="the medians in seconds, for programs")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--library", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        if chosen.library:
            from jax._src import xla_bridge

            # One device, as act has it, and plain CPU: threads are shared out among devices.
            options = {"cpu_device_count": 1}
            xla_bridge.register_plugin("xla", library_path=chosen.library, options=options)
        measure_here(sys.stdin)
        return
    medians = measure(chosen.target, chosen.rounds)
    if chosen.json:
        print(json.dumps(medians))
        return
    print(f"{'':12}{'act':>12}{'XLA alone':>12}{'jaxlib CPU':>12}  act to XLA alone")
    for kind, of_kind in medians.items():
        times = "".join(f"{of_kind[name] * 1e6:9.1f} us" for name in ("act", "xla", "cpu"))
        print(f"{kind:12}{times}  {claims(kind, of_kind['act'], of_kind['xla'])}")


if __name__ == "__main__":
    main()
