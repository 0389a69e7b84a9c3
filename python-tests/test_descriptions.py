"""Descriptions in Python, as the released tools and the paper spell them, and the commands of ``act isa``."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from act_pjrt.taidl import Accelerator, Constant, TaidlError
from conftest import HERE
from test_cli import MATMUL, act

DESCRIPTIONS = HERE / "descriptions"
FILETESTS = HERE.parent / "plugin" / "filetests"
TARGETS = HERE.parent / "isa" / "targets"


def imported(name: str, folder: Path) -> Path:
    """A description of DESCRIPTIONS as the command converts it; checked by the command, too."""
    out = folder / f"{name}.taidl"
    process = act("isa", "import", DESCRIPTIONS / f"{name}.py", "-o", out)
    assert process.returncode == 0, process.stderr
    process = act("isa", "check", out)
    assert (process.returncode, process.stdout) == (0, f"{out}: nothing is wrong\n")
    return out


@pytest.mark.parametrize("name", ["released_qkv", "paper_qkv"])
def test_both_spellings_compile_as_the_shipped_description_does(name: str, tmp_path: Path) -> None:
    description = imported(name, tmp_path)
    attention = FILETESTS / "attention.hlo"
    ours, theirs = (act("compile", attention, "--target", t).stdout for t in ("h_qkv", description))
    assert ours == theirs
    assert len(ours.splitlines()) > 9
    found = json.loads(act("run", attention, "--target", description, "--json").stdout)
    assert found["oracle"]["difference"] == found["simulator"]["difference"] == "bit for bit"


def test_a_third_buffer_and_a_transposition_on_chip(tmp_path: Path) -> None:
    description = imported("released_qkv_new", tmp_path)
    process = act("run", FILETESTS / "attention.hlo", "--target", description, "--json")
    found = json.loads(process.stdout)
    assert process.returncode == 0, found
    assert found["instructions"]["transpose_13"] == 1


@pytest.mark.parametrize(("m", "k", "n"), [(16, 16, 16), (20, 33, 17)])
def test_two_addressed_dimensions(m: int, k: int, n: int, tmp_path: Path) -> None:
    description = imported("released_gemmini", tmp_path)
    process = act("run", "-", "--target", description, "--json", text=MATMUL.format(m=m, k=k, n=n))
    found = json.loads(process.stdout)
    assert process.returncode == 0, found
    assert found["oracle"]["difference"] == found["simulator"]["difference"] == "bit for bit"
    assert {"mvin", "mvout_acc"} <= found["instructions"].keys()


MADE_UP = HERE.parent / "generator" / "tests"


@pytest.mark.parametrize("left", [0, 1])
@pytest.mark.parametrize("size", [16, 48])
def test_outer_products_are_added_up_in_numbered_tiles(size: int, left: int) -> None:
    """The tiles have a dimension more than the products, and rows are stored one by one."""
    text = f"""ENTRY e {{ a = f32[{size},{size}] parameter(0)  b = f32[{size},{size}] parameter(1)
  ROOT c = f32[{size},{size}] dot(a, b), lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{0}} }}"""
    found = json.loads(
        act("run", "-", "--target", MADE_UP / "outer_products.taidl", "--json", text=text).stdout
    )
    assert found["status"] == "ok", found
    tiles = (size // 16) ** 2
    instructions = found["instructions"]
    assert (instructions["zero"], instructions["fmopa"]) == (tiles, tiles * size)
    assert instructions["stza"] == 16 * tiles


@pytest.mark.parametrize(("m", "k", "n"), [(64, 64, 64), (7, 45, 33)])
def test_an_attribute_adds_products_to_a_sum(m: int, k: int, n: int) -> None:
    """Right operands lie in groups of four, which the host packs."""
    text = MATMUL.format(m=m, k=k, n=n)
    process = act("run", "-", "--target", MADE_UP / "grouped.taidl", "--json", text=text)
    found = json.loads(process.stdout)
    assert found["status"] == "ok", found
    assert found["oracle"]["difference"] == found["simulator"]["difference"] == "bit for bit"
    assert found["instructions"]["mac"] == -(-m // 32) * -(-k // 32) * -(-n // 32)


def test_ranges_follow_from_buffers_types_and_constraints(tmp_path: Path) -> None:
    text = imported("released_gemmini", tmp_path).read_text()
    # Columns: the buffer's size; scale: what an s8 holds.
    assert "mvin alpha(rows: 1..16384, cols: 1..16) beta" in text
    assert "scale: -128..127" in text
    assert "mac alpha(I: 1..16, J: 1..16, K: 1..16)" in text
    assert "require K / 16 <= 1" in text
    assert "cost 16" in text
    qkv = imported("released_qkv", tmp_path).read_text()
    # The transposed value fits its slice for 64 rows only.
    assert "load_cm alpha(n: 64..64)" in qkv
    assert "load_rm alpha(n: 1..128)" in qkv


def faulty() -> Accelerator:
    accelerator = Accelerator("faulty")
    accelerator.add_data_model("v", [8], [4], "f32")
    return accelerator


def test_syntax_errors_raise_at_once() -> None:
    instruction = faulty().add_instruction("f", [], ["a"])
    with pytest.raises(TaidlError, match=r"(?s)semantics of f:2:19.*ROOT %y = f32\[1 copy"):
        instruction.add_semantics("ENTRY f {\n  ROOT %y = f32[1 copy(%x);\n}")


def test_faults_of_the_whole_raise_when_written(tmp_path: Path) -> None:
    accelerator = faulty()
    instruction = accelerator.add_instruction("f", [], ["a"])
    instruction.set_outputs([["w", ["@a.a"], [1]]])
    instruction.add_semantics("ENTRY f { ROOT %y = f32[1,4] constant(0); }")
    with pytest.raises(TaidlError, match="unknown buffer `w`; the nearest known one is `v`"):
        accelerator.write(tmp_path / "out.taidl")
    assert not (tmp_path / "out.taidl").exists()


def test_constants_registers_and_updates() -> None:
    accelerator = faulty()
    accelerator.constants.append(Constant("LANES", 4))
    accelerator.state.append(Constant("mode", -1))
    instruction = accelerator.add_instruction("f", [], ["a"], update=["@s.mode = @s.mode + 1"])
    instruction.set_outputs([["v", ["@a.a"], [1]]])
    instruction.add_semantics("ENTRY f { ROOT %y = f32[1,`LANES`] constant(`0.5`); }")
    text = accelerator.to_taidl()
    assert "register mode = -1" in text
    assert "update mode = mode + 1" in text
    assert "f32[1, 4]" in text


def test_main_memory_may_be_ordered() -> None:
    accelerator = faulty()
    instruction = accelerator.add_instruction("f", [], ["a"])
    instruction.set_outputs([["v", ["@a.a"], [1]]])
    instruction.add_semantics("ENTRY f { ROOT %y = f32[1,4] constant(0); }")
    accelerator.set_hbm("dram", "1MB")
    assert "hbm dram: 1 MiB\n" in accelerator.to_taidl()
    accelerator.set_hbm("dram", "1MB", ordered=True)
    assert "hbm dram: 1 MiB ordered\n" in accelerator.to_taidl()


def test_several_accelerators_of_one_file(tmp_path: Path) -> None:
    source = tmp_path / "two.py"
    source.write_text(
        "from taidl.accelerator import Accelerator\nimport act.taidl\n"
        "for name in 'ab':\n"
        "    acc = Accelerator(name)\n    acc.add_data_model('v', [8], [4], 'f32')\n"
        "    f = acc.add_instruction('f', [], ['x'])\n    f.set_outputs([['v', ['@a.x'], ['1']]])\n"
        "    f.add_semantics('ENTRY f { ROOT %y = f32[1,4] constant(0); }')\n"
    )
    process = act("isa", "import", source, "-o", tmp_path / "one.taidl")
    assert process.returncode == 1
    assert "2 accelerators" in process.stderr
    assert not (tmp_path / "one.taidl").exists()
    assert act("isa", "import", source, "-o", tmp_path).returncode == 0
    assert (tmp_path / "a.taidl").exists()
    assert (tmp_path / "b.taidl").exists()


_ONE_FILL = (
    "from taidl import Accelerator\nacc = Accelerator('a')\nacc.add_data_model('v', [8], [4], 'f32')\n"
    "f = acc.add_instruction('f', [], ['in'])\nf.set_outputs([['v', ['@a.in'], ['1']]])\n"
    "f.add_constraints('@a.in % 2 == 0')\n"
    "f.add_semantics('ENTRY f { ROOT %y = f32[1,4] constant(0); }')\n"
)


@pytest.mark.parametrize("end", ["", "import sys\nsys.exit(0)", "raise SystemExit"])
def test_attributes_may_be_called_like_words_and_scripts_may_end_themselves(end: str, tmp_path: Path) -> None:
    source, out = tmp_path / "one.py", tmp_path / "one.taidl"
    source.write_text(_ONE_FILL + end)
    process = act("isa", "import", source, "-o", out)
    assert process.returncode == 0, process.stderr
    text = out.read_text()
    assert "instr f beta(in_) {\n  out v[in_ :+ 1]\n  require in_ % 2 == 0\n" in text


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(3)", "it ended with status 3"),
        ("raise SystemExit('no such array')", "no such array"),
        ("pass", "makes no Accelerator"),
        (
            "from taidl import Accelerator\nAccelerator('a').add_data_model('v', [8], [], 'q8')",
            "element type `q8`",
        ),
    ],
)
def test_a_file_that_cannot_be_imported_is_told(code: str, said: str, tmp_path: Path) -> None:
    source = tmp_path / "bad.py"
    source.write_text(code)
    process = act("isa", "import", source, "-o", tmp_path / "out.taidl")
    assert process.returncode == 1
    assert said in process.stderr
    assert not (tmp_path / "out.taidl").exists()


def test_check_tells_every_fault_of_every_file(tmp_path: Path) -> None:
    bad = tmp_path / "bad.taidl"
    bad.write_text("isa t\nhbm d0 1 MiB\nbufer v: f32[8 | 4]\n")
    process = act("isa", "check", TARGETS / "h_qkv.taidl", bad, tmp_path / "missing.taidl", "--json")
    assert process.returncode == 1
    found = json.loads(process.stdout)["files"]
    assert [file["right"] for file in found] == [True, False, False]
    assert f"{bad}:2:8" in found[1]["messages"]
    assert "the nearest known one is `buffer`" in found[1]["messages"]
    assert "cannot read" in found[2]["messages"]
    process = act("isa", "check", "-", text=(TARGETS / "gemmini.taidl").read_text())
    assert process.returncode == 0


def test_fmt_changes_the_layout_and_nothing_else(tmp_path: Path) -> None:
    right = (TARGETS / "gemmini.taidl").read_text()
    file = tmp_path / "g.taidl"
    file.write_text("\n".join(line.lstrip() for line in right.splitlines()))
    file.chmod(0o640)
    assert act("isa", "fmt", file, "--check").returncode == 1
    assert act("isa", "fmt", file, "--stdout").stdout == right
    assert file.read_text() != right
    assert act("isa", "fmt", file).returncode == 0
    assert file.read_text() == right
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert act("isa", "fmt", file, "--check").returncode == 0
    # A faulty text stays as it is, and nothing else is left in the folder.
    file.write_text("isa")
    process = act("isa", "fmt", file)
    assert process.returncode == 1
    assert "expected the accelerator's name" in process.stderr
    assert os.listdir(tmp_path) == ["g.taidl"]
    assert file.read_text() == "isa"


def test_show_is_a_page(tmp_path: Path) -> None:
    process = act("isa", "show", "h_qkv")
    assert process.returncode == 0
    assert "d1  bf16[128 | 64]    16 KiB" in process.stdout
    assert "y : bf16[n, 64] = e / d" in process.stdout
    found = json.loads(act("isa", "show", TARGETS / "gemmini.taidl", "--json").stdout)
    assert found["buffers"][0] == {"name": "sp", "shape": "s8[16384, 16 | ]", "bytes": 2**18, "notes": []}
    assert act("isa", "show", "nonesuch").returncode == 1


def test_the_committed_table_is_current() -> None:
    root = HERE.parent
    process = act("isa", "table", "--tests", root / "isa" / "tests" / "targets", "-o", "-")
    assert process.stdout == (root / "isa" / "TARGETS.md").read_text()
    process = act("isa", "table", "--tests", "no/such/folder")
    assert process.returncode == 1
    assert "no/such/folder" in process.stderr
