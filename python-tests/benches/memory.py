"""What a process keeps of programs that are gone: compile, execute and delete, over and over.

    python python-tests/benches/memory.py [--target x86] [--cycles 1000]

One process runs on act and offloads, another runs on the carried XLA library alone, as a plugin of its own.
Each cycle compiles a program with a constant of its own, so that nothing comes from a cache. Printed is by
how many MB each has grown since its first cycles, and the most that the project claims.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
from pathlib import Path

# Cycles before the first measurement: pools fill, and records of programs that are gone reach their bound.
WARM_UP = 300


def cycle(number: int) -> None:
    """Compiles, executes and deletes a program."""
    import jax
    import numpy as np

    x = np.ones((8, 8), np.float32)
    compiled = jax.jit(lambda x: x @ x + np.float32(number)).lower(x).compile()
    compiled(x).block_until_ready()


def resident() -> float:
    """Of this process, in MB, without what Python and JAX could give back."""
    import jax

    jax.clear_caches()
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure_here(cycles: int) -> None:
    """Prints MB before, MB after, and how many of the last kernels were on the device."""
    import act_pjrt

    for number in range(WARM_UP):
        cycle(number)
    before = resident()
    for number in range(WARM_UP, WARM_UP + cycles):
        cycle(number)
    after = resident()
    on_device = 0
    if os.environ["JAX_PLATFORMS"] == "act":
        on_device = sum(region["where"] == "device" for region in act_pjrt.regions())
    print(before, after, on_device)


def measure(platform: str, target: str, cycles: int) -> tuple[float, float, int]:
    """The same of a process on a platform: act, or xla (the carried library alone)."""
    import act_pjrt

    env = {key: value for key, value in os.environ.items() if not key.startswith(("JAX_", "ACT_", "XLA_"))}
    env |= {"JAX_PLATFORMS": platform, "TF_CPP_MIN_LOG_LEVEL": "3", "ACT_CACHE_DIR": "off"}
    command = [sys.executable, __file__, "--worker", "--cycles", str(cycles)]
    if platform == "act":
        env["ACT_TARGET"] = target
    else:
        library = Path(act_pjrt.library_path()).parent / "xla" / "pjrt_c_api_cpu_plugin.so"
        command += ["--library", str(library)]
    process = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    before, after, on_device = process.stdout.split()
    return float(before), float(after), int(on_device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", default="x86")
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--library", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        if chosen.library:
            from jax._src import xla_bridge

            xla_bridge.register_plugin("xla", library_path=chosen.library, options={"cpu_device_count": 1})
        measure_here(chosen.cycles)
        return
    grown = {}
    for platform in ("xla", "act"):
        before, after, on_device = measure(platform, chosen.target, chosen.cycles)
        grown[platform] = after - before
        print(f"{platform:4} {before:8.1f} MB -> {after:8.1f} MB: {after - before:+.1f} MB", end="")
        print(f", {on_device} of the last regions on the device" if platform == "act" else "")
        whole = before
    more = grown["act"] - grown["xla"]
    print(f"{more:+.1f} MB for act, {100 * more / whole:+.1f} % of what it has (claimed: at most +5 %)")


if __name__ == "__main__":
    main()
