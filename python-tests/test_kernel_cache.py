"""Kernels kept on disk: found by the next process, never believed when damaged, shared by processes."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import python

# One product that gemmini takes and one of integers that it does not multiply.
PRODUCTS = """
import json
import act_pjrt, jax, jax.numpy as jnp, numpy as np
a = np.arange(-32, 32, dtype=np.int8).reshape(4, 16)
b = np.arange(-128, 128, dtype=np.int8).reshape(16, 16)
product = jax.jit(lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32))
right = bool((np.asarray(product(a, b)) == a.astype(np.int32) @ b.astype(np.int32)).all())
wide = jax.jit(lambda a: jax.lax.dot(a, a, preferred_element_type=jnp.int32))(np.ones((8, 8), np.int16))
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


# Three products, of which processes share some; again and again, so that what others do to
# the folder is met between any two.
SHARED_PRODUCTS = """
import json, sys
import act_pjrt, jax, jax.numpy as jnp, numpy as np
number = int(sys.argv[1])
b = np.arange(-128, 128, dtype=np.int8).reshape(16, 16)
product = jax.jit(lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32))
right = []
for _ in range(3):
    for rows in (4, 4 * (1 + number % 4), 4 * (2 + number % 4)):
        a = np.arange(rows * 16, dtype=np.int8).reshape(rows, 16)
        right.append(bool((np.asarray(product(a, b)) == a.astype(np.int32) @ b.astype(np.int32)).all()))
    jax.clear_caches()
device = {region["where"] for region in act_pjrt.regions()}
print(json.dumps([all(right), sorted(device), act_pjrt.kernel_cache()]))
"""


def test_processes_at_once_survive_damage_and_a_full_folder(tmp_path: Path) -> None:
    """Eight write into a folder that is too small for all, while entries are cut, changed and removed."""
    run(tmp_path)
    largest = max(file.stat().st_size for file in entries(tmp_path))
    limit = 3 * largest
    size = {"ACT_CACHE_DIR": str(tmp_path), "ACT_CACHE_SIZE": str(limit / 2**20)}

    def process(number: int) -> subprocess.CompletedProcess[str]:
        return python("-c", SHARED_PRODUCTS, str(number), platforms="act", target="gemmini", **size)

    with ThreadPoolExecutor(8) as pool:
        processes = [pool.submit(process, number) for number in range(8)]
        turn = 0
        while not all(future.done() for future in processes):
            for file in entries(tmp_path):
                turn += 1
                with contextlib.suppress(OSError):
                    content = file.read_bytes()
                    if turn % 3 == 0:
                        file.write_bytes(content[: len(content) // 2])
                    elif turn % 3 == 1:
                        file.write_bytes(content.replace(b"a", b"b"))
                    else:
                        file.unlink()
            time.sleep(0.02)
    for future in processes:
        finished = future.result()
        assert finished.returncode == 0, finished.stderr
        right, where, _ = json.loads(finished.stdout)
        assert right
        assert where == ["device"]
    # The last one to write has cut the folder to its bound; nothing half-written is left behind.
    run(tmp_path, ACT_CACHE_SIZE=size["ACT_CACHE_SIZE"])
    left = entries(tmp_path)
    assert sum(file.stat().st_size for file in left) <= limit + 2 * largest
    assert not [file for file in left if file.name.startswith(".")]


def test_a_size_that_is_none_is_refused(tmp_path: Path) -> None:
    process = python("-c", PRODUCTS, platforms="act", target="gemmini", ACT_CACHE_SIZE="plenty")
    assert process.returncode == 1
    assert "ACT_CACHE_SIZE" in process.stderr
    assert "is not a number of MiB" in process.stderr


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
