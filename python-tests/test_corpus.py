"""A corpus of a program's regions: captured from its dump, then compiled into a table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import python

ACT = Path(sys.executable).parent / "act"
PROGRAM = """
import jax, jax.numpy as jnp
a = jnp.ones((20, 30), jnp.int8)
b = jnp.ones((30, 40), jnp.int8)
print(jax.jit(lambda a, b: jnp.dot(a, b, preferred_element_type=jnp.int32))(a, b)[0, 0])
"""


def test_regions_are_captured_and_tabled(tmp_path: Path) -> None:
    dump, corpus = tmp_path / "dump", tmp_path / "corpus"
    ran = python("-c", PROGRAM, platforms="act", target="gemmini", ACT_DUMP="1", ACT_DUMP_DIR=str(dump))
    assert ran.stdout.strip() == "30", ran.stderr
    capture = [ACT, "corpus", "capture", dump / "modules", "--into", corpus, "--target", "gemmini"]
    subprocess.run(capture, check=True, timeout=300)
    regions = list(corpus.rglob("*.hlo"))
    assert len(regions) == 1
    assert "s32[20,40]" in regions[0].read_text()
    table = [ACT, "corpus", "table", corpus, "--target", "gemmini", "--output", "-"]
    written = subprocess.run(table, check=True, timeout=300, capture_output=True, text=True).stdout
    (row,) = [line for line in written.splitlines() if line.startswith("| gemmini |")]
    assert "100" in row
