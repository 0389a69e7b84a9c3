"""ACT_VERIFY: what runs is proved, what is wrong fails its program, and no cache is believed."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import python

PRODUCT = """
import json
import act_pjrt, jax, jax.numpy as jnp, numpy as np
a = np.arange(-32, 32, dtype=np.int8).reshape(4, 16)
b = np.arange(-128, 128, dtype=np.int8).reshape(16, 16)
def product(a, b):
    return jax.lax.dot(a, b, preferred_element_type=jnp.int32)
right = bool((np.asarray(jax.jit(product)(a, b)) == a.astype(np.int32) @ b.astype(np.int32)).all())
regions = [r["verification"] for r in act_pjrt.regions() if "verification" in r]
print(json.dumps([right, regions]))
"""

DIGEST = 64


def run(cache: Path | str = "off", **environment: str) -> subprocess.CompletedProcess[str]:
    """The program on gemmini."""
    return python("-c", PRODUCT, platforms="act", target="gemmini", ACT_CACHE_DIR=str(cache), **environment)


def outcome(process: subprocess.CompletedProcess[str]) -> tuple[bool, list[dict[str, Any]]]:
    """Whether the product was right, and the verdicts."""
    assert process.returncode == 0, process.stderr
    right, verdicts = json.loads(process.stdout)
    return right, verdicts


def spoil(cache: Path) -> None:
    """Whoever can write the cache can make an entry look whole: here its product reads the wrong operand."""
    spoilt = 0
    for file in (file for file in cache.rglob("*") if file.is_file()):
        stored = json.loads(file.read_bytes()[DIGEST:])
        code = stored["entry"].get("code")
        if code is None:
            continue
        mlir = code["mlir"]
        wrong = mlir.replace("ptrtoint %operand0 :", "ptrtoint %operand1 :")
        assert wrong != mlir
        code["mlir"] = wrong
        body = json.dumps(stored, separators=(",", ":")).encode()
        file.write_bytes(hashlib.sha256(body).hexdigest().encode() + body)
        spoilt += 1
    assert spoilt


def test_a_proof_is_in_python_and_in_the_dump(tmp_path: Path) -> None:
    process = run(ACT_VERIFY="strict", ACT_DUMP="1", ACT_DUMP_DIR=str(tmp_path))
    right, [verdict] = outcome(process)
    assert right
    assert verdict["verdict"] == "proved"
    assert verdict["numerics"] == "xla"
    assert any("commutative ring" in law for law in verdict["rests_on"])
    [said] = tmp_path.rglob("verification.txt")
    assert said.read_text().startswith("proved\n")
    assert list(said.parent.glob("law_*.smt2"))
    assert '"verification"' in (tmp_path / "regions.txt").read_text()


def test_without_being_asked_nothing_is_verified() -> None:
    assert outcome(run()) == (True, [])


def test_a_kernel_from_the_cache_is_verified_too(tmp_path: Path) -> None:
    assert outcome(run(tmp_path)) == (True, [])
    _, [verdict] = outcome(run(tmp_path, ACT_VERIFY="1"))
    assert verdict["verdict"] == "proved"
    spoil(tmp_path)
    right, _ = outcome(run(tmp_path))
    assert not right, "the entry is used, or this test shows nothing"
    process = run(tmp_path, ACT_VERIFY="1")
    assert process.returncode != 0
    said = process.stderr.strip()
    for part in ("refuted", "is not verified", "dot_general", "<string>:7"):
        assert part in said, said


@pytest.mark.parametrize("strict", [False, True])
def test_without_z3_the_verdict_is_unknown(strict: bool) -> None:
    process = run(ACT_Z3_LIB="/nowhere/libz3.so", ACT_VERIFY="strict" if strict else "1")
    if strict:
        assert process.returncode != 0
        assert "pip install act-pjrt[verify]" in process.stderr
        assert "ACT_VERIFY=strict demands a proof" in process.stderr
        return
    right, [verdict] = outcome(process)
    assert right
    assert verdict["verdict"] == "unknown"
    assert "pip install act-pjrt[verify]" in verdict["reason"]
