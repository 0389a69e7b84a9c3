"""Arrays that are overwritten or freed as soon as TensorFlow has taken them, and tensors between devices.

Run as a program it prints, as JSON, what each case gave beside what it must give, or its error. A transfer
that reads its array too late sees what was written after the call.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_cases import case, run

ACT, OTHER, CPU = "/device:ACT:0", "/device:ACT:1", "/device:CPU:0"
# Small ones are copied at once; large ones, and those that lie right, may be used where they are.
SIZES = (3, 1000, 1 << 16, 1 << 21)
DTYPES = (np.float32, np.int8, np.int64, np.int32, np.complex64)


def arrays() -> Iterator[np.ndarray[Any, Any]]:
    """Arrays that begin at addresses of every alignment that their type allows."""
    for dtype in DTYPES:
        for size in SIZES:
            whole = np.arange(size + 1).astype(dtype)
            yield whole[:size]
            yield whole[1:]


@case
def overwritten_after_a_constant() -> Any:
    for array in arrays():
        wanted = array.copy()
        with tf.device(ACT):
            tensor = tf.constant(array)
            array[:] = 7
            yield tf.identity(tensor), wanted


@case
def overwritten_after_a_conversion() -> Any:
    for array in arrays():
        wanted = array.copy()
        tensor = tf.convert_to_tensor(array)
        array[:] = 7
        yield tensor + 0, wanted


@case
def overwritten_after_a_call() -> Any:
    add = tf.function(lambda x: x + x)
    compiled = tf.function(lambda x: x + x, jit_compile=True)
    for function in (add, compiled):
        for array in arrays():
            wanted = array + array
            result = function(array)
            array[:] = 7
            yield result, wanted


@case
def overwritten_after_an_assignment() -> Any:
    for dtype in DTYPES:
        array = np.arange(1 << 16).astype(dtype)
        variable = tf.Variable(np.zeros_like(array))
        wanted = array.copy()
        variable.assign(array)
        array[:] = 7
        yield variable, wanted
        array[:] = wanted
        variable.assign_add(array)
        array[:] = 7
        yield variable, wanted + wanted


@case
def overwritten_in_a_loop() -> Any:
    """One array takes every batch in turn."""
    batch = np.empty((64, 1024), np.float32)
    double = tf.function(lambda x: x * 2, jit_compile=True)
    results = []
    for step in range(50):
        batch[:] = step
        results.append(double(batch))
    yield (
        np.array([[float(tf.reduce_min(one)), float(tf.reduce_max(one))] for one in results]),
        np.array([[2.0 * step] * 2 for step in range(50)]),
    )


@case
def freed() -> Any:
    """The memory of what is gone goes to the next array."""
    tensors = []
    for step in range(40):
        tensors.append(tf.constant(np.full(1 << 18, step, np.float32)))
        gc.collect()
    other = [np.full(1 << 18, -1.0, np.float32) for _ in range(40)]
    yield np.array([float(tf.reduce_sum(one)) for one in tensors]), np.arange(40.0) * (1 << 18)
    yield sum(float(one[0]) for one in other), -40.0


@case
def fed() -> Any:
    """A session's feed."""
    array = np.zeros((256, 256), np.float32)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        place = tf.compat.v1.placeholder(tf.float32, array.shape)
        total = tf.reduce_sum(place)
        sums = []
        for step in range(10):
            array[:] = step
            sums.append(session.run(total, {place: array}))
            array[:] = -1
    yield np.array(sums), np.arange(10.0) * array.size


@case
def results_are_not_shared() -> Any:
    """What was read stays as it was when the variable changes, and may not be written into the tensor."""
    variable = tf.Variable(np.arange(1 << 16, dtype=np.float32))
    tensor = tf.identity(variable)
    read, shared = variable.numpy(), np.asarray(tensor)
    variable.assign_add(tf.ones_like(variable))
    variable[0].assign(-5.0)
    yield read, np.arange(1 << 16, dtype=np.float32)
    yield shared, read
    yield tensor, read
    wanted = read + 1
    wanted[0] = -5
    yield variable, wanted


@case
def copied_to_a_variable() -> Any:
    """Assigned from another one, which then changes."""
    first, second = tf.Variable(tf.range(1000.0)), tf.Variable(tf.zeros([1000]))
    second.assign(first)
    same = tf.identity(second)
    first.assign(tf.zeros([1000]))
    second.assign_add(tf.ones([1000]))
    yield same, np.arange(1000, dtype=np.float32)
    yield second, np.arange(1000, dtype=np.float32) + 1
    yield first, np.zeros(1000, np.float32)


@case
def between_devices() -> Any:
    for dtype in (tf.float32, tf.int8, tf.int32, tf.bfloat16, tf.bool, tf.complex64):
        for there in (ACT, OTHER, CPU):
            for back in (ACT, OTHER, CPU):
                with tf.device(there):
                    source = tf.cast(tf.reshape(tf.range(1200), [3, 400]), dtype)
                with tf.device(back):
                    copy = tf.identity(source)
                    yield copy, np.arange(1200).reshape(3, 400).astype(dtype.as_numpy_dtype)


@case
def variables_between_devices() -> Any:
    with tf.device(ACT):
        here = tf.Variable(tf.range(6.0))
    with tf.device(OTHER):
        there = tf.Variable(here)
        there.assign_add(here)
    here.assign(there)
    yield here, np.arange(6, dtype=np.float32) * 2

    @tf.function
    def both(x: Any) -> Any:
        with tf.device(ACT):
            y = x @ x
        with tf.device(OTHER):
            z = y + x
        with tf.device(CPU):
            return z - y

    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    yield both(tf.constant(x)), x


def compared(got: Any, wanted: Any) -> list[Any]:
    """Whether they are equal, and both as text."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    same = got.shape == wanted.shape and bool(np.array_equal(got, wanted))
    return [same, f"{got.dtype}{got.shape} {got}", str(wanted)]


if __name__ == "__main__":
    assert tf.constant(1.0).device.endswith("ACT:0")
    run(compared)
