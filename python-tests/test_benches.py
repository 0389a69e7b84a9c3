"""The benches run and print ratios; what the ratios are depends on the machine and is no test."""

from __future__ import annotations

import json
import math

from conftest import HERE, python

BENCH = HERE / "benches" / "matmul_ratio.py"


def test_every_product_has_a_ratio() -> None:
    process = python(BENCH, "--target", "gemmini", "--target", "trainium", "--size", "32", "--rounds", "2")
    assert process.returncode == 0, process.stderr
    header, *rows = process.stdout.splitlines()
    assert header.split() == ["target", "program", "simulator", "jaxlib", "CPU", "ratio"]
    found = []
    for row in rows:
        target, shape, elem, act, _, cpu, _, ratio = row.split()
        assert shape == "32x32x32"
        assert float(act) > 0
        assert float(cpu) > 0
        assert math.isfinite(float(ratio)), row
        found.append((target, elem))
    assert found == [("gemmini", "int8"), ("trainium", "bfloat16"), ("trainium", "float32")]


def test_a_program_that_stays_on_the_host_has_no_ratio() -> None:
    # A vector unit without products.
    lanes = HERE / "examples" / "lanes.taidl"
    request = json.dumps([str(lanes), "float32", 16, "float32"])
    process = python(BENCH, "--measure", request, "--rounds", "1", platforms="act,cpu", target=str(lanes))
    assert process.returncode == 0, process.stderr
    measured = json.loads(process.stdout)
    assert list(measured) == ["refusal"]
    assert "no instruction to tile for" in measured["refusal"]


def test_unknown_targets_are_refused() -> None:
    process = python(BENCH, "--target", "gemini")
    assert process.returncode == 2
    assert "no program for gemini; there are" in process.stderr


def test_overhead_is_measured_on_three_platforms() -> None:
    bench = HERE / "benches" / "overhead.py"
    process = python(bench, "--rounds", "1", "--target", "gemmini", "--json")
    assert process.returncode == 0, process.stderr
    medians = json.loads(process.stdout)
    assert list(medians) == ["small call", "program", "compile"]
    for of_kind in medians.values():
        assert list(of_kind) == ["act", "xla", "cpu"]
        assert all(seconds > 0 for seconds in of_kind.values())
