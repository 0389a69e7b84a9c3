"""JAX's persistent compilation cache: programs come back with their kernels, and only where they belong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conftest import python

PROGRAM = """
import collections, json
import jax, jax.numpy as jnp, numpy as np
from jax._src import monitoring

events = collections.Counter()
monitoring.register_event_listener(lambda event, **_: events.update([event.rsplit("/", 1)[-1]]))
a = np.arange(-32, 32, dtype=np.int8).reshape(4, 16)
product = jax.jit(lambda a: jax.lax.dot(a, a.T, preferred_element_type=jnp.int32))(a)
right = bool((np.asarray(product) == a.astype(np.int32) @ a.T.astype(np.int32)).all())
device = {}
if jax.devices()[0].device_kind != "cpu":
    import act_pjrt
    considered = len(act_pjrt.regions())
    device = {"considered": considered, "last": act_pjrt.last_run(), "all": act_pjrt.executables()}
print(json.dumps([right, events["cache_hits"], events["cache_misses"], device]))
"""


def run(cache: Path, platform: str, target: str | None) -> tuple[int, int, dict[str, Any]]:
    """Hits and misses, and what act says; the result has been compared."""
    process = python(
        "-c",
        PROGRAM,
        platforms=platform,
        target=target,
        JAX_COMPILATION_CACHE_DIR=str(cache),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
    )
    assert process.returncode == 0, process.stderr
    right, hits, misses, device = json.loads(process.stdout)
    assert right
    return hits, misses, device


def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    hits, misses, first = run(tmp_path, "act", "gemmini")
    assert (hits, misses) == (0, 1)
    assert first["considered"] == 1
    hits, misses, second = run(tmp_path, "act", "gemmini")
    assert (hits, misses) == (1, 0)
    assert second["considered"] == 0
    # The kernel came along: it runs on the device as before, in a program that still has its name.
    assert second["last"]["total"]["instructions"]["matmul"] >= 1
    assert second["last"] == first["last"]
    assert [entry["module"] for entry in second["all"]] == ["jit__lambda"]


def test_no_entry_is_taken_for_another_platform_or_target(tmp_path: Path) -> None:
    for platform, target in [("cpu", None), ("act", None), ("act", "gemmini"), ("act", "x86")]:
        assert run(tmp_path, platform, target)[:2] == (0, 1), (platform, target)
    assert run(tmp_path, "cpu", None)[:2] == (1, 0)
