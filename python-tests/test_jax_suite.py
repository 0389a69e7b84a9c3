"""The runner of JAX's own tests, on a suite of our own that fails in every way there is."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from conftest import python

SUITE = """
import os, signal, time
import pytest

PLATFORM = os.environ["JAX_PLATFORMS"]

def test_everywhere(): pass

def test_nowhere(): raise ValueError("as on cpu")

@pytest.mark.skipif(PLATFORM == "act", reason="not here")
def test_skipped(): pass

def test_killed():
    if PLATFORM == "act": os.kill(os.getpid(), signal.SIGSEGV)

@pytest.mark.parametrize("number", [1, 2])
def test_wrong(number):
    if PLATFORM == "act": raise ValueError(f"for one reason: {number}")

def test_last(): assert os.environ.get("ACT_TARGET") == (None if PLATFORM == "cpu" else "gemmini")
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "own_test.py").write_text(SUITE)
    (tmp_path / "tests" / "broken_test.py").write_text(
        "import os\nassert os.environ['JAX_PLATFORMS'] == 'cpu'\n"
    )
    return tmp_path


def test_what_passes_on_cpu_only_is_listed_by_cause(checkout: Path) -> None:
    out = checkout / "out"
    process = python("-m", "jax_suite", checkout, "own_test", "--target", "gemmini", "--out", out)
    assert process.returncode == 1, process.stderr
    assert process.stdout.splitlines()[2:] == [
        f"{'own_test':36}     6     1     0  |     2     4     1",
        "    act.gemmini: 2 x failed: ValueError: for one reason: …",
        "    act.gemmini: 1 x crashed: the process ended with signal 11",
        "    act.gemmini: 1 x skipped: Skipped: not here",
    ]
    suite = ElementTree.parse(out / "act.gemmini" / "own_test.xml").getroot()
    counted = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counted == {"tests": "7", "failures": "3", "errors": "1", "skipped": "1"}
    # The process that a test ended is started again, and goes on with what is left.
    assert suite.find("testcase[@name='test_last']") is not None
    listed = (out / "regressions.txt").read_text()
    assert "own_test.py::test_wrong[2]" in listed
    assert "test_nowhere" not in listed


def test_a_sample_is_the_same_on_both_sides(checkout: Path) -> None:
    out = checkout / "out"
    python("-m", "jax_suite", checkout, "own_test", "--sample", "3", "--out", out)
    names = [
        {case.get("name") for case in ElementTree.parse(out / platform / "own_test.xml").getroot()}
        for platform in ("cpu", "act.host")
    ]
    assert names[0] == names[1]
    assert len(names[0]) == 3


def test_a_file_that_cannot_be_imported_fails(checkout: Path) -> None:
    process = python("-m", "jax_suite", checkout, "broken_test", "--out", checkout / "out")
    assert process.returncode == 1
    counted, cause = process.stdout.splitlines()[2:]
    assert counted.endswith("     0     0     0  |     0     1     0")
    assert "1 x failed: AssertionError" in cause or "1 x failed: assert" in cause


def test_a_folder_without_tests_is_refused(tmp_path: Path) -> None:
    process = python("-m", "jax_suite", tmp_path, "own_test")
    assert process.returncode == 1
    assert "no checkout of JAX's repository" in process.stderr
