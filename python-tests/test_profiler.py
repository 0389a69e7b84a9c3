"""Traces of jax.profiler show what ran on the device, by the name that it has in the program."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import python

TRACE = """
import glob, json, sys
import act_pjrt, jax, jax.numpy as jnp

a = jnp.ones((32, 32), jnp.int8)

@jax.jit
def layer(a):
    return jax.lax.dot(a, a, preferred_element_type=jnp.int32)

layer(a).block_until_ready()
with jax.profiler.trace(sys.argv[1], create_perfetto_trace=False):
    for _ in range(3):
        layer(a).block_until_ready()
layer(a).block_until_ready()
cycles = act_pjrt.last_run()["total"]["cycles"]
[file] = glob.glob(sys.argv[1] + "/**/*.xplane.pb", recursive=True)
data = jax.profiler.ProfileData.from_file(file)
found = [
    [plane.name, event.name, event.duration_ns, dict(event.stats)]
    for plane in data.planes if "gemmini" in plane.name
    for line in plane.lines for event in line.events
]
host = [plane.name for plane in data.planes]
print(json.dumps([found, cycles, host]))
"""


def test_kernels_are_in_the_trace(tmp_path: Path) -> None:
    process = python("-c", TRACE, tmp_path, platforms="act", target="gemmini")
    assert process.returncode == 0, process.stderr
    found, cycles, planes = json.loads(process.stdout.splitlines()[-1])
    # Only what ran while the trace was taken.
    assert len(found) == 3
    for plane, name, duration, numbers in found:
        assert plane == "/device:CUSTOM:gemmini"
        assert "jit(layer)/dot_general" in name
        assert duration > 0
        assert numbers["cycles"] == cycles
        assert numbers["instructions"] > 0
    # XLA's own plane is there as ever.
    assert "/host:CPU" in planes


def test_a_trace_without_kernels_has_no_device(tmp_path: Path) -> None:
    code = TRACE.replace('["total"]["cycles"]', "").replace("jnp.int8", "jnp.float64")
    process = python("-c", code, tmp_path, platforms="act", target="gemmini")
    assert process.returncode == 0, process.stderr
    found, cycles, _ = json.loads(process.stdout.splitlines()[-1])
    assert (found, cycles) == ([], None)
