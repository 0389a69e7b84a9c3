"""What a process keeps of programs that are gone."""

from __future__ import annotations

from conftest import python

CYCLES = """
import gc
import jax, jax.numpy as jnp, numpy as np
import act_pjrt

x = np.ones((8, 8), np.float32)

def cycle(number):
    # A constant of its own makes each a kernel of its own.
    compiled = jax.jit(lambda x: x @ x + np.float32(number)).lower(x).compile()
    compiled(x).block_until_ready()

def resident():
    gc.collect()
    jax.clear_caches()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 / 1e6

for number in range(40):
    cycle(number)
before = resident()
for number in range(100):
    cycle(1000 + number)
print(resident() - before, sum(region["where"] == "device" for region in act_pjrt.regions()))
"""


def test_code_of_programs_that_are_gone_is_not_kept() -> None:
    """Megabytes for a hundred kernels; each takes about one while it is held."""
    process = python("-c", CYCLES, platforms="act", target="x86")
    assert process.returncode == 0, process.stderr
    grown, kernels = map(float, process.stdout.split())
    assert kernels == 140
    assert grown < 30
