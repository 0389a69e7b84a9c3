"""The command act as the wheel installs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import HERE

ACT = Path(sys.executable).parent / "act"

MATMUL = """HloModule product
ENTRY main {{
  a = s8[{m},{k}] parameter(0)
  b = s8[{k},{n}] parameter(1)
  ROOT product = s32[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""


def act(
    *arguments: str | Path, text: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs the command; ``text`` is its standard input."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("ACT_")} | environment
    command = [str(ACT), *map(str, arguments)]
    return subprocess.run(command, env=env, input=text or "", text=True, capture_output=True, timeout=600)


def answer(process: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What --json printed."""
    found: dict[str, Any] = json.loads(process.stdout)
    return found


def test_targets_lists_the_descriptions() -> None:
    process = act("targets", "--json")
    assert process.returncode == 0
    assert {"gemmini", "h_qkv"} <= {target["name"] for target in answer(process)["targets"]}


@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (16, 16, 16), (17, 130, 15), (64, 64, 1), (130, 17, 64)]
)
def test_run_agrees_three_ways(m: int, k: int, n: int) -> None:
    process = act("run", "-", "--target", "gemmini", "--json", text=MATMUL.format(m=m, k=k, n=n))
    found = answer(process)
    assert process.returncode == 0, found
    assert found["status"] == "ok"
    assert found["oracle"]["difference"] == found["simulator"]["difference"] == "bit for bit"
    assert found["oracle_instructions"] == found["simulator_instructions"] == found["instructions"]
    # Results leave the accumulator once, as 32-bit integers.
    assert found["bytes_moved"]["acc"]["dram"] == 4 * m * n
    blocks = -(-m // 16) * -(-k // 16) * -(-n // 16)
    assert sum(c for name, c in found["instructions"].items() if name.startswith("matmul")) == blocks


@pytest.mark.parametrize("emit", ["hlo", "pii", "asm", "program", "mlir", "device"])
def test_every_stage_can_be_printed(emit: str) -> None:
    text = MATMUL.format(m=64, k=130, n=64)
    process = act("compile", "-", "--target", "gemmini", "--emit", emit, text=text)
    assert process.returncode == 0, process.stderr
    marks = {
        "hlo": "dot(",
        "pii": "matmul",
        "asm": "compute_preloaded",
        "program": "for",
        "mlir": "scf.for",
        "device": ".insn r 0x7b",
    }
    assert marks[emit] in process.stdout


def test_the_constraint_solver_gives_the_same_results() -> None:
    text = MATMUL.format(m=20, k=40, n=20)
    solver = os.environ.get("ACT_ORTOOLS_LIB") or next(
        Path(sys.prefix).glob("lib/python3*/site-packages/ortools/.libs/libortools.so.9")
    )
    process = act(
        "run", "-", "--target", "gemmini", "--json", text=text, ACT_ALLOC="cpsat", ACT_ORTOOLS_LIB=str(solver)
    )
    assert process.returncode == 0, process.stdout
    assert answer(process)["allocators"] == ["cp-sat"]


def test_a_refusal_is_told_with_its_reason() -> None:
    process = act("run", "-", "--target", "h_qkv", "--json", text=MATMUL.format(m=16, k=16, n=16))
    assert process.returncode == 1
    assert answer(process)["status"] == "refused"
    assert "h_qkv" in answer(process)["refusal"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("compile", "missing.hlo", "--target", "gemmini"), "missing.hlo"),
        (("compile", "-", "--target", "nonesuch"), "gemmini_plus, h_qkv"),
        (("compile", "-", "--target", "missing.taidl"), "missing.taidl"),
        (("compile", "-", "--target", "gemmini"), "expected"),
    ],
)
def test_bad_input_is_told(arguments: tuple[str, ...], said: str) -> None:
    process = act(*arguments, text="HloModule broken\nENTRY main { a = s8[4 parameter(0) }")
    assert process.returncode == 1
    assert said in process.stderr


def test_a_kernel_too_large_to_run_is_told() -> None:
    text = MATMUL.format(m=2**40, k=16, n=16)
    process = act("run", "-", "--target", "gemmini", text=text)
    assert process.returncode == 1
    assert "smaller shape" in process.stderr


def test_the_example_compiles_for_the_description_of_readme() -> None:
    examples = HERE / "examples"
    process = act("run", examples / "saxpy.hlo", "--target", examples / "lanes.taidl")
    assert process.returncode == 0, process.stdout + process.stderr
