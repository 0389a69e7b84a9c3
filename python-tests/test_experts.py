"""Single operations at 64 by 64 as users compile them, against what a library's experts wrote for Gemmini.

By the command and by JAX, they take no more loads, stores and products.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import python
from test_cli import act, answer

HEAD = "HloModule m\nENTRY e {\n  low = s32[] constant(-128)\n  high = s32[] constant(127)\n"
PRODUCT = "  p = s32[64,64] dot(wa, wb), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
SUMS = {"GEMM": "copy(p)", "MAC": "add(p, wc)", "ADD": "add(wa, wb)"}

# Loads, stores, products.
EXPERTS = {"GEMM": (8, 4, 64), "MAC": (12, 4, 64), "ADD": (8, 4, 0)}


def program(name: str) -> str:
    leaves = "ab" if name != "MAC" else "abc"
    text = HEAD
    for k, leaf in enumerate(leaves):
        text += f"  {leaf} = s8[64,64] parameter({k})\n  w{leaf} = s32[64,64] convert({leaf})\n"
    text += "" if name == "ADD" else PRODUCT
    text += f"  v = s32[64,64] {SUMS[name]}\n  s = s32[64,64] clamp(low, v, high)\n"
    return text + "  ROOT r = s8[64,64] convert(s)\n}\n"


def counts(instructions: dict[str, int]) -> tuple[int, int, int]:
    def number(*beginnings: str) -> int:
        return sum(n for name, n in instructions.items() if name.startswith(beginnings))

    return number("mvin"), number("mvout"), number("matmul")


@pytest.mark.parametrize("name", EXPERTS)
def test_the_command_takes_what_experts_take(name: str) -> None:
    found = answer(act("run", "-", "--target", "gemmini", "--json", text=program(name)))
    assert found["status"] == "ok", found
    assert counts(found["instructions"]) == EXPERTS[name]


def test_loops_of_one_instruction_do_not_hide_cheaper_tiles() -> None:
    for name in ("GEMM", "ADD"):
        found = answer(act("run", "-", "--target", "gemmini_plus", "--json", text=program(name)))
        assert list(found["instructions"].values()) == [1], found["instructions"]
    found = answer(act("run", "-", "--target", "gemmini_plus", "--json", text=program("MAC")))
    assert counts(found["instructions"]) == EXPERTS["MAC"]


def test_jax_takes_what_experts_take(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import json, act_pjrt, jax, jax.numpy as jnp, numpy as np\n"
        "a, b, c = ((np.arange(4096) * k % 251 - 125).reshape(64, 64).astype(np.int8) for k in (3, 5, 7))\n"
        "dot = lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32)\n"
        "gemm = lambda a, b, c: jnp.clip(dot(a, b), -128, 127).astype(jnp.int8)\n"
        "mac = lambda a, b, c: jnp.clip(dot(a, b) + c.astype(jnp.int32), -128, 127).astype(jnp.int8)\n"
        "said = []\n"
        "for f, plus in ((gemm, 0), (mac, 1)):\n"
        "    got = np.asarray(jax.jit(f)(a, b, c))\n"
        "    sums = a.astype(np.int32) @ b.astype(np.int32) + plus * c.astype(np.int32)\n"
        "    assert (got == np.clip(sums, -128, 127)).all()\n"
        "    said.append(act_pjrt.last_run()['total']['instructions'])\n"
        "print(json.dumps(said))\n"
    )
    process = python(script, platforms="act", target="gemmini")
    assert process.returncode == 0, process.stderr
    gemm, mac = json.loads(process.stdout.splitlines()[-1])
    assert counts(gemm) == EXPERTS["GEMM"]
    assert counts(mac) == EXPERTS["MAC"]


SHAPES = [(16, 16, 64), (17, 130, 15), (33, 40, 70), (65, 65, 65), (2, 80, 32), (48, 64, 104), (1, 200, 129)]


@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
def test_larger_tiles_are_right_at_ragged_edges(m: int, k: int, n: int) -> None:
    for tail in ("copy(p)", "add(p, wc)"):
        text = program("MAC").replace("add(p, wc)", tail)
        text = text.replace("a = s8[64,64]", f"a = s8[{m},{k}]").replace(
            "wa = s32[64,64]", f"wa = s32[{m},{k}]"
        )
        text = text.replace("b = s8[64,64]", f"b = s8[{k},{n}]").replace(
            "wb = s32[64,64]", f"wb = s32[{k},{n}]"
        )
        text = text.replace("[64,64]", f"[{m},{n}]")
        found: dict[str, Any] = answer(act("run", "-", "--target", "gemmini", "--json", text=text))
        assert found["status"] == "ok", found
        assert found["oracle"]["difference"] == found["simulator"]["difference"] == "bit for bit"
        cycles = [attempt.get("modelled_cycles") for attempt in found["search"]["attempts"]]
        # The cheapest of what was tried, larger tiles among them.
        assert found["modelled_cycles"] == min(c for c in cycles if c is not None)
        assert len(cycles) > 1
