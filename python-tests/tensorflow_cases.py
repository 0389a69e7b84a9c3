"""Cases of a program for TensorFlow, as pairs of what came out and what must come out.

The program runs them and prints the outcomes, a test reads them. Imports no TensorFlow, which the tests' own
environment lacks.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conftest import tensorflow_python

CASES: dict[str, Callable[[], Any]] = {}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    """A case returns pairs: what came out, what must come out."""
    CASES[function.__name__] = function
    return function


def run(compared: Callable[[Any, Any], list[Any]]) -> None:
    """Prints, as JSON, what ``compared`` says of every case's pairs, or the case's error."""
    outcomes: dict[str, Any] = {}
    for name, body in CASES.items():
        print(name, file=sys.stderr, flush=True)
        try:
            outcomes[name] = [compared(got, wanted) for got, wanted in body()]
        except Exception as error:
            outcomes[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(outcomes))


def names(program: Path) -> list[str]:
    """The cases of a program, without importing TensorFlow."""
    functions = [node for node in ast.parse(program.read_text()).body if isinstance(node, ast.FunctionDef)]
    return [function.name for function in functions if function.decorator_list]


def outcomes_of(program: Path, devices: int = 1) -> dict[str, Any]:
    """What a program printed on so many devices."""
    process = tensorflow_python(program, devices=devices)
    assert process.returncode == 0, process.stdout[-500:] + process.stderr[-3000:]
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


def check(outcome: Any) -> None:
    """Fails where a case ended in an error or a pair differs."""
    assert not isinstance(outcome, str), outcome
    assert outcome
    for agree, got, wanted in outcome:
        assert agree, f"{got} instead of {wanted}"
