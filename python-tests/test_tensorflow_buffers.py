"""Memory between TensorFlow and the device: nothing is read too late, and copies are whole."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from conftest import HERE, tensorflow_python

PROGRAM = HERE / "tensorflow_buffers.py"


def names() -> list[str]:
    """The cases, without importing TensorFlow."""
    functions = [node for node in ast.parse(PROGRAM.read_text()).body if isinstance(node, ast.FunctionDef)]
    return [function.name for function in functions if function.decorator_list]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    process = tensorflow_python(PROGRAM, devices=2)
    assert process.returncode == 0, process.stdout[-500:] + process.stderr[-3000:]
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("name", names())
def test_values_are_right(name: str, outcomes: dict[str, Any]) -> None:
    outcome = outcomes[name]
    assert not isinstance(outcome, str), outcome
    assert outcome
    for same, got, wanted in outcome:
        assert same, f"{got} instead of {wanted}"


USAGE = """
import json
import numpy as np, tensorflow as tf
usage = tf.config.experimental.get_memory_info
with tf.device("/device:ACT:1"):
    x = tf.constant(np.ones((256, 256), np.float32))
before = usage("ACT:1")
with tf.device("/device:ACT:1"):
    y = x @ x
    both = usage("/job:localhost/replica:0/task:0/device:ACT:1")
    y += 1
    del y
after = usage("ACT:1")
tf.config.experimental.reset_memory_stats("ACT:1")
outcomes = [before, both, after, usage("ACT:1"), usage("ACT:0")]
for name in ("ACT:2", "NONE:0"):
    try:
        outcomes.append(usage(name))
    except ValueError as error:
        outcomes.append(str(error))
print(json.dumps(outcomes))
"""


def test_memory_in_use_is_told_for_each_device() -> None:
    process = tensorflow_python("-c", USAGE, devices=2)
    assert process.returncode == 0, process.stderr[-3000:]
    before, both, after, reset, other, *unknown = json.loads(process.stdout.splitlines()[-1])
    array = 256 * 256 * 4
    # A constant is copied once more on the device.
    assert before == {"current": array, "peak": 2 * array}
    assert both == {"current": 2 * array, "peak": 2 * array}
    # While y is made anew there are x, the old y and the new one; TensorFlow keeps the scalar.
    assert 0 <= after["current"] - array <= 64
    assert 0 <= after["peak"] - 3 * array <= 64
    assert reset == {"current": after["current"], "peak": after["current"]}
    assert other == {"current": 0, "peak": 0}
    assert all("No matching devices found" in message for message in unknown)
