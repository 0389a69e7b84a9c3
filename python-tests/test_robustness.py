"""Kernels at the borders: nothing fits, sizes of 0 and 1, addresses beyond 2^31, constants of megabytes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import python
from test_cli import act, answer

# A machine of products whose scratchpad has ROWS rows: what MOVES says goes out of it and back.
TINY = """isa tiny
hbm d0: 1 MiB
buffer v: f32[{rows} | 8] {nospill}
instr load beta(addr, r) {{ in d0[addr :+ 256]  out v[r :+ 8]
  computation {{ x = u8[256] parameter(0)  y = u8[8,8,4] reshape(x)
    ROOT z = f32[8,8] bitcast-convert(y) }} }}
instr store beta(r, addr) {{ in v[r :+ 8]  out d0[addr :+ 256]
  computation {{ x = f32[8,8] parameter(0)  y = u8[8,8,4] bitcast-convert(x)
    ROOT z = u8[256] reshape(y) }} }}
instr mul beta(a, b, d) {{ in v[a :+ 8]  in v[b :+ 8]  out v[d :+ 8]
  computation {{ x = f32[8,8] parameter(0)  y = f32[8,8] parameter(1)
    ROOT z = f32[8,8] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }} }}
"""

PRODUCTS = """HloModule products
ENTRY main {
  a = f32[8,8] parameter(0)
  b = f32[8,8] parameter(1)
  c = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[8,8] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT e = f32[8,8] dot(c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def tiny(folder: Path, rows: int, nospill: str = "") -> Path:
    path = folder / f"tiny{rows}{nospill}.taidl"
    path.write_text(TINY.format(rows=rows, nospill=nospill))
    return path


def test_what_cannot_fit_is_refused_with_what_was_tried(tmp_path: Path) -> None:
    # Two tiles hold both operands and, in the place of one, the product: with moves to memory all fits.
    for rows in (16, 24):
        found = answer(act("run", "-", "--target", tiny(tmp_path, rows), "--json", text=PRODUCTS))
        assert found["status"] == "ok", found
    # In one, nothing does: all ways are tried that the search has time for.
    for rows, nospill, needed in [(8, "", "2 "), (8, "nospill", "2 "), (16, "nospill", "")]:
        description = tiny(tmp_path, rows, nospill)
        found = answer(act("compile", "-", "--target", description, "--json", text=PRODUCTS))
        assert found["status"] == "refused"
        assert f"`v` [{rows}] has no room for {needed}" in found["refusal"], found["refusal"]
        assert re.search(r"the search for room gave up after \d+ ways", found["refusal"]), found["refusal"]


def test_what_is_proven_not_to_fit_is_told_as_that(tmp_path: Path) -> None:
    # Both operands of a product would have to lie in the same rows, wherever everything else goes.
    description = tmp_path / "overlapping.taidl"
    text = TINY.format(rows=24, nospill="")
    apart = "in v[b :+ 8]  out v[d :+ 8]"
    description.write_text(text.replace(apart, f"{apart}  require a == 3  require b == 4"))
    found = answer(act("compile", "-", "--target", description, "--json", text=PRODUCTS))
    assert found["status"] == "refused"
    assert "no allocation exists: " in found["refusal"], found["refusal"]
    assert "gave up" not in found["refusal"]


@pytest.mark.parametrize("target", ["gemmini", "x86", "trainium", "amx", "feather", "eva"])
def test_sizes_of_zero_and_one(target: str, tmp_path: Path) -> None:
    types = {"eva": ("np.int16", "jnp.int16")} | dict.fromkeys(
        ("gemmini", "amx", "feather"), ("np.int8", "jnp.int32")
    )
    kind, out = types.get(target, ("np.float32", "jnp.float32"))
    script = tmp_path / "sizes.py"
    script.write_text(
        "import itertools, jax, jax.numpy as jnp, numpy as np\n"
        f"kind, out = {kind}, {out}\n"
        "for m, k, n in itertools.product((0, 1, 5), repeat=3):\n"
        "    a = (np.arange(m * k) % 7 - 3).reshape(m, k).astype(kind)\n"
        "    b = (np.arange(k * n) % 5 - 2).reshape(k, n).astype(kind)\n"
        "    got = np.asarray(jax.jit(lambda a, b: jax.lax.dot(a, b, preferred_element_type=out))(a, b))\n"
        "    assert got.shape == (m, n)\n"
        "    assert (got == a.astype(np.int64) @ b.astype(np.int64)).all(), (m, k, n, got)\n"
        "print('right')\n"
    )
    process = python(script, platforms="act", target=target)
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[-1] == "right"


def test_addresses_beyond_31_bits() -> None:
    """No such operand is made: the addresses of the last round of every loop are read off the program."""
    rows, depth = 1 << 20, 4096
    text = (
        "HloModule large\nENTRY main {\n"
        f"  a = s8[{rows},{depth}] parameter(0)\n  b = s8[{depth},16] parameter(1)\n"
        f"  ROOT c = s32[{rows},16] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}\n"
    )
    process = act("compile", "-", "--target", "gemmini", "--emit", "program", text=text)
    assert process.returncode == 0, process.stdout + process.stderr
    last = {operand: last_address(process.stdout, operand) for operand in ("operand0", "operand1", "result0")}
    # The last tile of 16 rows begins so far before the end; what is loaded at once along a row is a multiple
    # of 16 elements.
    first_of_last_row = (rows - 16) * depth
    assert first_of_last_row <= last["operand0"] < first_of_last_row + depth
    assert last["operand0"] > 1 << 31
    assert last["operand0"] % 16 == 0
    assert last["operand1"] < depth * 16
    assert last["result0"] == (rows - 16) * 16 * 4


def last_address(program: str, segment: str) -> int:
    """The largest address of a segment over all rounds of the loops of a printed program."""
    last = {name: int(trip) - 1 for name, trip in re.findall(r"for %(i\d+) in 0\.\.(\d+)", program)}
    addresses = [0]
    for terms in re.findall(rf"{segment}((?:\+[%\w*]+)*)", program):
        address = 0
        for term in filter(None, terms.split("+")):
            loop, _, factor = term.rpartition("*")
            address += int(factor) * (last[loop.lstrip("%")] if loop else 1)
        addresses.append(address)
    return max(addresses)


@pytest.mark.parametrize("target", ["gemmini", "x86"])
def test_constants_of_megabytes(target: str, tmp_path: Path) -> None:
    kind, out = ("np.int8", "jnp.int32") if target == "gemmini" else ("np.float32", "jnp.float32")
    script = tmp_path / "constants.py"
    script.write_text(
        "import jax, jax.numpy as jnp, numpy as np, act_pjrt, json\n"
        f"weights = (np.arange(4 << 20) % 13 - 6).reshape(2048, 2048).astype({kind})\n"
        f"a = (np.arange(3 * 2048) % 5 - 2).reshape(3, 2048).astype({kind})\n"
        "product = jax.jit(lambda a: jax.lax.dot(a, weights, preferred_element_type=" + out + "))\n"
        "got = np.asarray(product(a))\n"
        "assert (got == a.astype(np.int64) @ weights.astype(np.int64)).all()\n"
        "print(json.dumps(['key' in region for region in act_pjrt.regions()]))\n"
    )
    process = python(script, platforms="act", target=target)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout.splitlines()[-1]) == [True]
