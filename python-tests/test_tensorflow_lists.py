"""Lists of tensors and their like between devices: the right values, and never the process's end."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import HERE
from tensorflow_cases import check, names, outcomes_of

PROGRAM = HERE / "tensorflow_lists.py"


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    return outcomes_of(PROGRAM)


@pytest.mark.parametrize("name", names(PROGRAM))
def test_values_are_right(name: str, outcomes: dict[str, Any]) -> None:
    check(outcomes[name])
