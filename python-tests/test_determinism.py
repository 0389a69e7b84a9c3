"""The same program, description and options give the same bytes: in every process, on any number of CPUs.

Nothing is taken from a cache. A hundred processes of each case:
``ACT_DETERMINISM_RUNS=100 python -m pytest python-tests/test_determinism.py``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import HERE, python
from test_cli import act

FILETESTS = HERE.parent / "plugin" / "filetests"

RUNS = int(os.environ.get("ACT_DETERMINISM_RUNS", "3"))

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
a = np.arange(33 * 40).reshape(33, 40).astype(np.int8)
b = np.arange(40 * 17).reshape(40, 17).astype(np.int8)
product = jax.jit(lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32))
clipped = jax.jit(lambda a, b: jnp.clip(product(a, b) >> 4, 0, 127).astype(jnp.int8))
print(np.asarray(product(a, b)).sum(), np.asarray(clipped(a, b)).astype(np.int64).sum())
"""


@contextmanager
def processors(run: int) -> Iterator[None]:
    """Every other run has one processor, which children inherit: thread pools are sized by it."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, every if run % 2 == 0 else {min(every)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, every)


@pytest.mark.parametrize(
    ("kernel", "target", "options"),
    [
        ("product.hlo", "gemmini", ()),
        ("product.hlo", "gemmini", ("--alloc", "cpsat")),
        ("attention.hlo", "h_qkv", ()),
        ("attention.hlo", "h_qkv", ("--alloc", "cpsat")),
        ("product_bytes_padded.hlo", "amx", ()),
        ("product_bytes_padded.hlo", "amx", ("--alloc", "cpsat")),
        ("softmax_columns.hlo", "trainium", ()),
        # A refusal is an answer as well.
        ("product.hlo", "h_qkv", ()),
    ],
)
def test_the_command_gives_the_same_bytes(kernel: str, target: str, options: tuple[str, ...]) -> None:
    outputs = set()
    for run in range(RUNS):
        with processors(run):
            process = act(
                "compile", FILETESTS / kernel, "--target", target, "--emit", "mlir", "--json", *options
            )
        found = json.loads(process.stdout)
        # Seconds are for people.
        found.pop("compile_seconds", None)
        found.pop("phase_seconds", None)
        outputs.add(json.dumps(found))
    assert len(outputs) == 1
    assert json.loads(outputs.pop())["status"] in ("ok", "refused")


def test_jax_programs_give_the_same_dump(tmp_path: Path) -> None:
    digests = set()
    for run in range(RUNS):
        # One folder for all: its name must not be what makes them equal or different.
        script = tmp_path / "program.py"
        script.write_text(PROGRAM)
        dump = tmp_path / f"dump{run}"
        with processors(run):
            process = python(script, platforms="act", target="gemmini", ACT_DUMP="1", ACT_DUMP_DIR=str(dump))
        assert process.returncode == 0, process.stderr
        files = sorted(file for file in dump.rglob("*") if file.is_file())
        assert any(file.name == "stitched.mlir" for file in files)
        digest = hashlib.sha256(process.stdout.encode())
        for file in files:
            digest.update(str(file.relative_to(dump)).encode())
            digest.update(file.read_bytes())
        digests.add(digest.hexdigest())
    assert len(digests) == 1
