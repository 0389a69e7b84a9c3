"""``act verify``: what it says of files by hand, and that it and checks in Python end when told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import HERE
from test_cli import ACT, act

CASES = HERE.parent / "bolt" / "cases"

CASE = """case doubling
type u8 = unsigned 8
fun Double8(a: u8): u8 = a + a reads add(a, a)
param N = 8
ir {
  input X[N]: u8
  output Y[N]: u8
  for i in 0..N { Y[i] := add(X[i], X[i]) }
}
aligned { for i in 0..N @STEP { Y[i] := Double8(X[i]) } }
mapping {
  output R[N]: u8
  buffer M[8]: u8
  reg count: bv4
  parfor i in 0..N { M[i] := X[i] }
  count := 0
  loop i in 0..N @STEP whereby count == i {
    M[count] := Double8(M[count])
    count := count + 1
  } until count == N
  parfor i in 0..N { R[i] := M[i] }
}
relate {
  M[j] == X[j] over j in 0..N used (j @STEP)
  M[j] == Y[j] over j in 0..N made (j @STEP)
  ensure R[i] == Y[i] over i in 0..N
}
"""

# What is written instead of what, where the error is, what it says.
BROKEN = [
    ("case doubling", "", "1:1", "no `case NAME`"),
    ("param N = 8", "param N = 8 $", "4:13", "starts nothing"),
    ("param N = 8", "param N = P", "4:11", "`P` is not declared"),
    ("param N = 8", "param N = 99999999999999999999", "4:11", "too large"),
    ("param N = 8", "param N = 4611686018427387904 * 4", "4:11", "64 bits"),
    ("param N = 8", "param N in 9..3 = 8", "4:1", "outside of 9..3"),
    ("param N = 8", "param N = 8\nrequire N > 9", "5:9", "do not fulfil"),
    ("param N = 8", 'include "missing.hex"\nparam N = 8', "4:9", "cannot read `missing.hex`"),
    ("param N = 8", "param N = " + "(" * 9999, "4:111", "nested more than"),
    ("M[i] := X[i]", "M[i] := i", "15:30", "an element of `u8` is expected"),
    ("M[i] := X[i]", "M[i] := Q[i]", "15:30", "`Q` is not declared"),
    ("M[i] := X[i]", "M[i] := X[i", "15:34", "is expected here"),
    ("reg count: bv4", "reg count: bv400", "14:14", "1 to 62 bits"),
    ("Double8(X[i])", "Double8(X[i], X[i])", "10:41", "takes 1, not 2"),
    ("used (j @STEP)", "used (j @NOWHERE)", "24:37", "no loop is labelled"),
    ("unsigned 8", "float 99 99", "2:17", "a width"),
]

# What can be read, and is wrong or cannot be proved.
WRONG = [
    ("count := count + 1", "count := count", "refuted", "never stops"),
    ("reg count: bv4", "reg count: bv2", "refuted", "never stops"),
    ("buffer M[8]", "buffer M[4]", "refuted", "`M` has no place"),
    ("M[i] := X[i]", "M[i / (N - 8)] := X[i]", "refuted", "divided by what is not positive"),
    (" whereby count == i", "", "unknown", "not inductive"),
    ("ensure R[i] == Y[i] over i in 0..N", "", "unknown", "asks for nothing"),
    ("param N = 8", "param N = 4000000000000", "unknown", "no run is made of"),
]


def edited(tmp_path: Path, old: str, new: str) -> Path:
    """The case with something else written in it."""
    assert old in CASE
    file = tmp_path / "case.hex"
    file.write_text(CASE.replace(old, new, 1))
    return file


def z3() -> dict[str, str]:
    """Where the tests' Z3 is."""
    return {"ACT_Z3_LIB": os.environ["ACT_Z3_LIB"]} if "ACT_Z3_LIB" in os.environ else {}


@pytest.mark.parametrize(("old", "new", "place", "says"), BROKEN, ids=[says for *_, says in BROKEN])
def test_a_broken_file_is_an_error_with_its_place(
    tmp_path: Path, old: str, new: str, place: str, says: str
) -> None:
    file = edited(tmp_path, old, new)
    process = act("verify", file)
    assert process.returncode == 1, process
    assert process.stderr.startswith(f"act: {file}:{place}"), process.stderr
    assert says in process.stderr


@pytest.mark.parametrize(("old", "new", "verdict", "says"), WRONG, ids=[says for *_, says in WRONG])
def test_a_wrong_case_is_not_proved(tmp_path: Path, old: str, new: str, verdict: str, says: str) -> None:
    process = act("verify", edited(tmp_path, old, new), "--limit", "5", **z3())
    assert process.returncode == 1, process
    assert process.stdout.startswith(f"doubling: {verdict}"), process.stdout
    assert says in process.stdout


@pytest.mark.parametrize("contents", [b"", bytes(range(256)), b"\xff\xfe", b"case x\0"])
def test_what_is_no_text_is_an_error(tmp_path: Path, contents: bytes) -> None:
    file = tmp_path / "case.hex"
    file.write_bytes(contents)
    process = act("verify", file)
    assert process.returncode == 1
    assert process.stderr.startswith("act: ")
    assert "case.hex" in process.stderr


def test_settings_folders_and_libraries_that_do_not_exist(tmp_path: Path) -> None:
    file = edited(tmp_path, "case", "case")
    assert act("verify", file, **z3()).returncode == 0
    for setting, says in [("Q=4", "no parameter `Q`"), ("N=x", "no integer"), ("N", "NAME=INTEGER")]:
        process = act("verify", file, "--set", setting)
        assert process.returncode != 0
        assert says in process.stderr
    process = act("verify", file, "--dump", file, **z3())
    assert process.returncode == 1
    assert f"cannot write {file}" in process.stderr
    process = act("verify", file, ACT_Z3_LIB=str(tmp_path / "libz3.so"))
    assert process.returncode == 1
    assert "cannot open Z3" in process.stdout
    assert "pip install act-pjrt[verify]" in process.stdout


def test_several_files_end_in_a_table(tmp_path: Path) -> None:
    broken = edited(tmp_path, "param N = 8", "param N = P")
    files = [CASES / "flexasr.hex", CASES / "pooling.hex", CASES / "pooling_max.hex", broken]
    process = act("verify", *files, **z3())
    assert process.returncode == 1
    *_, first, second, last = process.stdout.splitlines()
    # What pooling_max.hex includes is no case by itself; the broken file keeps it from nothing.
    assert first.split()[:2] == ["pooling_max", "proved"]
    assert second.split()[:2] == [str(broken), "error"]
    assert last.startswith("1 of 2 proved")
    found = json.loads(act("verify", *files, "--json", **z3()).stdout)
    assert [case["verdict"] for case in found["cases"]] == ["proved", "error"]


def test_ctrl_c_ends_the_command(tmp_path: Path) -> None:
    # One that the solver thinks about for minutes.
    case = CASES / "linear_256.hex"
    command = [str(ACT), "verify", str(case), "--set", "T=4000", "--limit", "300", "--dump", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    assert process.poll() is None, "it is still at work, or this test shows nothing"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert not out
    assert not list(tmp_path.iterdir())


PROGRAM = """
import jax, numpy as np
a = np.ones((512, 512), np.float32)
jax.jit(lambda a, b: a @ b)(a, a)
print("compiled")
"""


def test_ctrl_c_ends_a_check_in_python(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ACT_")} | z3()
    environment |= {
        "JAX_PLATFORMS": "act",
        "ACT_TARGET": "x86",
        "ACT_CACHE_DIR": "off",
        "ACT_VERIFY": "1",
        "ACT_VERIFY_TIMEOUT": "600",
        "ACT_DUMP": "1",
        "ACT_DUMP_DIR": str(tmp_path),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # The check follows what is written down of the compilation.
    while not list(tmp_path.rglob("stitched.mlir")) and process.poll() is None:
        time.sleep(0.02)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode not in (None, 0)
    assert "KeyboardInterrupt" in err
    assert not out
    # The check came to no verdict, and nothing is left half written.
    assert not list(tmp_path.rglob("verification*"))
    assert not list(tmp_path.rglob(".*"))


def test_a_check_ends_with_its_time(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.hlo"
    kernel.write_text(
        "HloModule m\nENTRY main {\n  a = f32[256,256] parameter(0)\n"
        "  ROOT r = f32[256,256] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    )
    process = act("verify", kernel, "--target", "x86", "--timeout", "0.01", **z3())
    assert process.returncode == 1
    assert "unknown: time limit" in process.stdout
    process = act("verify", kernel, "--target", "x86", ACT_VERIFY_TIMEOUT="soon")
    assert "invalid value 'soon'" in process.stderr
