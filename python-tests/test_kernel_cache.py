"""Kernels kept on disk: found by the next process, never believed when damaged, shared by processes."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import python

# One product that gemmini takes and one whose type it does not have.
PRODUCTS = """
import json
import act_pjrt, jax, jax.numpy as jnp, numpy as np
a = np.arange(-32, 32, dtype=np.int8).reshape(4, 16)
b = np.arange(-128, 128, dtype=np.int8).reshape(16, 16)
product = jax.jit(lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32))
right = bool((np.asarray(product(a, b)) == a.astype(np.int32) @ b.astype(np.int32)).all())
wide = jax.jit(lambda a: a @ a.T)(np.ones((8, 8), np.float32))
regions = [region.get("refusal") or region["summary"] for region in act_pjrt.regions()]
print(json.dumps([right, regions, act_pjrt.kernel_cache()]))
"""


def run(cache: Path | str, **environment: str) -> tuple[list[Any], dict[str, int]]:
    """What became of the regions, and the cache's counts; the results have been compared."""
    process: subprocess.CompletedProcess[str] = python(
        "-c", PRODUCTS, platforms="act", target="gemmini", ACT_CACHE_DIR=str(cache), **environment
    )
    assert process.returncode == 0, process.stderr
    right, regions, counts = json.loads(process.stdout)
    assert right
    assert len(regions) >= 2
    return regions, counts


def entries(cache: Path) -> list[Path]:
    return [file for file in cache.rglob("*") if file.is_file()]


def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    regions, first = run(tmp_path)
    assert first["found"] == 0
    assert first["missing"] == len(entries(tmp_path)) >= 2
    again, second = run(tmp_path)
    assert second == {"found": first["missing"], "missing": 0, "damaged": 0}
    # Code, counters and reasons are the same whether found or made.
    assert again == regions
    assert {type(region) for region in regions} == {dict, str}


def test_other_options_are_other_kernels(tmp_path: Path) -> None:
    _, first = run(tmp_path)
    for changed in ({"ACT_NUMERICS": "exact"}, {"ACT_STRICT": "1"}):
        _, counts = run(tmp_path, **changed)
        assert counts == {"found": 0, "missing": first["missing"], "damaged": 0}


@pytest.mark.parametrize("damage", ["cut", "changed", "exchanged"])
def test_damaged_entries_are_compiled_anew(damage: str, tmp_path: Path) -> None:
    regions, first = run(tmp_path)
    files = entries(tmp_path)
    contents = [file.read_bytes() for file in files]
    for k, file in enumerate(files):
        if damage == "cut":
            file.write_bytes(contents[k][: len(contents[k]) // 2])
        elif damage == "changed":
            # As long as before, and still JSON.
            file.write_bytes(contents[k].replace(b"1", b"2"))
        else:
            file.write_bytes(contents[k - 1])
    again, counts = run(tmp_path)
    assert counts == {"found": 0, "missing": 0, "damaged": first["missing"]}
    assert again == regions
    assert [file.read_bytes() for file in files] == contents


def test_processes_at_once_share_a_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: run(tmp_path), range(3)))
    assert all(regions == found[0][0] for regions, _ in found)
    assert sum(counts["damaged"] for _, counts in found) == 0
    # Nothing half-written is left behind.
    assert not [file for file in entries(tmp_path) if file.name.startswith(".")]


def test_a_cache_that_cannot_be_is_no_failure() -> None:
    _, counts = run("/proc/nowhere")
    assert counts["found"] == 0


def test_a_cache_may_be_switched_off(tmp_path: Path) -> None:
    _, counts = run("off", HOME=str(tmp_path))
    assert counts == {"found": 0, "missing": 0, "damaged": 0}
    assert entries(tmp_path) == []


def test_the_default_is_the_users_cache_folder(tmp_path: Path) -> None:
    run("", XDG_CACHE_HOME=str(tmp_path))
    # An empty value is no value, which switches a setting off.
    assert entries(tmp_path) == []
    unset = "import os; os.environ.pop('ACT_CACHE_DIR')"
    process = python("-c", unset + PRODUCTS, platforms="act", target="gemmini", XDG_CACHE_HOME=str(tmp_path))
    assert process.returncode == 0, process.stderr
    assert entries(tmp_path / "act-pjrt" / "kernels")


def test_the_search_ends_with_its_time() -> None:
    """Nothing is tried when there is no time, and the program runs on the host."""
    process = python(
        "-c", PRODUCTS, platforms="act", target="gemmini", ACT_COMPILE_TIMEOUT="0", ACT_CACHE_DIR="off"
    )
    assert process.returncode == 0, process.stderr
    right, regions, _ = json.loads(process.stdout)
    assert right
    assert all(isinstance(region, str) for region in regions)
    assert "ACT_COMPILE_TIMEOUT" in regions[0]


def test_what_had_no_time_is_not_kept(tmp_path: Path) -> None:
    run(tmp_path, ACT_COMPILE_TIMEOUT="0")
    regions, _ = run(tmp_path)
    assert any(isinstance(region, dict) for region in regions)


def test_a_time_that_is_none_is_refused() -> None:
    process = python("-c", PRODUCTS, platforms="act", target="gemmini", ACT_COMPILE_TIMEOUT="soon")
    assert process.returncode == 1
    assert "is not a number of seconds" in process.stderr
