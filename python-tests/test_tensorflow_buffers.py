"""Memory between TensorFlow and the device: nothing is read too late, and copies are whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import HERE, tensorflow_python
from tensorflow_cases import check, names, outcomes_of

PROGRAM = HERE / "tensorflow_buffers.py"


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    return outcomes_of(PROGRAM, devices=2)


@pytest.mark.parametrize("name", names(PROGRAM))
def test_values_are_right(name: str, outcomes: dict[str, Any]) -> None:
    check(outcomes[name])


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
