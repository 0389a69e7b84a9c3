"""Lists of tensors and their like between devices: the right values, and never the process's end."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from conftest import HERE, tensorflow_python

PROGRAM = HERE / "tensorflow_lists.py"


def names() -> list[str]:
    """The cases, without importing TensorFlow."""
    functions = [node for node in ast.parse(PROGRAM.read_text()).body if isinstance(node, ast.FunctionDef)]
    return [function.name for function in functions if function.decorator_list]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    process = tensorflow_python(PROGRAM)
    assert process.returncode == 0, process.stdout[-500:] + process.stderr[-3000:]
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("name", names())
def test_values_are_right(name: str, outcomes: dict[str, Any]) -> None:
    outcome = outcomes[name]
    assert not isinstance(outcome, str), outcome
    assert outcome
    for agree, got, wanted in outcome:
        assert agree, f"{got} instead of {wanted}"
