"""Lists of tensors, and other values that TensorFlow calls variants, between ACT and CPU.

Run as a program it prints, as JSON, what each case gave beside what it must give, or its error. A case that
ends the process is the last one that stands on stderr.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_cases import case, run

ACT, CPU = "/device:ACT:0", "/device:CPU:0"
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def list_of(rows: Any) -> Any:
    shape = tf.constant(rows.shape[1:].as_list(), tf.int32)
    return tf.raw_ops.TensorListFromTensor(tensor=rows, element_shape=shape)


def stacked(handle: Any, dtype: Any = tf.float32, shape: Any = (3,)) -> Any:
    return tf.raw_ops.TensorListStack(
        input_handle=handle, element_shape=tf.constant(shape, tf.int32), element_dtype=dtype
    )


@case
def eager() -> Any:
    for there, back in ((ACT, CPU), (CPU, ACT)):
        with tf.device(there):
            handle = list_of(tf.constant(ROWS))
            same = tf.identity(handle)
        with tf.device(back):
            yield stacked(handle), ROWS
            yield stacked(tf.identity(same)), ROWS
            yield (
                tf.raw_ops.TensorListGetItem(
                    input_handle=same, index=2, element_shape=[3], element_dtype=tf.float32
                ),
                ROWS[2],
            )


@case
def within_a_function() -> Any:
    def moved(there: str, back: str) -> Any:
        @tf.function
        def function(x: Any) -> Any:
            with tf.device(there):
                rows = tf.TensorArray(tf.float32, 4).unstack(x)
            with tf.device(back):
                return rows.stack(), rows.read(1)

        return function(tf.constant(ROWS))

    for there, back in ((ACT, CPU), (CPU, ACT)):
        whole, row = moved(there, back)
        yield whole, ROWS
        yield row, ROWS[1]


@case
def between_functions() -> Any:
    """Strings, integers and elements that were never written too. Eager operators on ACT take no strings."""
    for dtype, values in (
        (tf.float32, ROWS),
        (tf.int32, ROWS.astype(np.int32)),
        (tf.bool, ROWS > 4),
        (tf.string, ROWS.astype(str).astype(object)),
    ):

        @tf.function
        def made(x: Any) -> Any:
            return list_of(x)

        @tf.function
        def used(handle: Any, dtype: Any = dtype) -> Any:
            return stacked(handle, dtype)

        handle = made(tf.constant(values, dtype))
        wanted = values if dtype != tf.string else np.vectorize(str.encode, otypes=[object])(values)
        yield used(handle), wanted
        if dtype != tf.string:
            yield stacked(handle, dtype), wanted
        with tf.device(CPU):
            yield stacked(handle, dtype), wanted

    @tf.function
    def reserved() -> Any:
        handle = tf.raw_ops.TensorListReserve(element_shape=[3], num_elements=2, element_dtype=tf.float32)
        return tf.raw_ops.TensorListSetItem(input_handle=handle, index=1, item=tf.ones([3]))

    handle = reserved()
    for device in (ACT, CPU):
        with tf.device(device):
            yield stacked(handle), [[0, 0, 0], [1, 1, 1]]
            yield (
                tf.raw_ops.TensorListGetItem(
                    input_handle=handle, index=0, element_shape=[3], element_dtype=tf.float32
                ),
                [0, 0, 0],
            )


@case
def loops_over_both() -> Any:
    @tf.function
    def function(x: Any) -> Any:
        here, there = tf.TensorArray(tf.float32, 4), tf.TensorArray(tf.int32, 0, dynamic_size=True)
        for i in tf.range(4):
            here = here.write(i, x[i] * 2)
            with tf.device(CPU):
                there = there.write(i, i * i)
        return here.stack(), there.stack()

    floats, integers = function(tf.constant(ROWS))
    yield floats, ROWS * 2
    yield integers, [0, 1, 4, 9]


@case
def branches() -> Any:
    @tf.function
    def function(x: Any, longer: Any) -> Any:
        handle = list_of(x)
        handle = tf.cond(
            longer,
            lambda: tf.raw_ops.TensorListPushBack(input_handle=handle, tensor=tf.zeros([3])),
            lambda: handle,
        )
        return stacked(handle), tf.raw_ops.TensorListLength(input_handle=handle)

    for longer in (True, False):
        whole, length = function(tf.constant(ROWS), tf.constant(longer))
        yield whole, np.concatenate([ROWS, np.zeros((int(longer), 3))])
        yield length, 4 + longer


@case
def gradients_of_a_loop() -> Any:
    """d/dx of the sum of the squares of running sums; the list of states is read by the gradient's loop."""

    @tf.function
    def function(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            state, states = tf.zeros([3]), tf.TensorArray(tf.float32, 4)
            for i in tf.range(4):
                with tf.device(CPU):
                    state = state + x[i]
                states = states.write(i, state)
            loss = tf.reduce_sum(states.stack() ** 2)
        return tape.gradient(loss, x)

    sums = np.cumsum(ROWS, 0)
    yield function(tf.constant(ROWS)), 2 * np.cumsum(sums[::-1], 0)[::-1]


@case
def maps_and_scans() -> Any:
    whole = tf.function(lambda x: tf.scan(lambda a, b: a + b, x))
    yield whole(tf.range(5)), [0, 1, 3, 6, 10]
    yield whole(tf.range(5.0)), [0, 1, 3, 6, 10]
    yield tf.scan(lambda a, b: a + b, tf.range(5)), [0, 1, 3, 6, 10]
    yield tf.foldl(lambda a, b: a * b, tf.range(1, 5)), 24
    ragged = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    for mapped in (
        lambda r: tf.map_fn(lambda x: x * 2, r),
        tf.function(lambda r: tf.map_fn(lambda x: x * 2, r)),
    ):
        yield mapped(ragged).to_tensor(), [[2, 4], [0, 0], [6, 0]]
        yield mapped(ragged).row_lengths(), [2, 0, 1]
    words = tf.function(lambda x: tf.map_fn(lambda word: word + "!", x))
    yield words(tf.constant(["a", "b"])), np.array([b"a!", b"b!"], object)


@case
def recurrent_layers() -> Any:
    """Operator by operator, as loops, against the same layer unrolled."""
    x = tf.constant(np.random.default_rng(0).standard_normal((2, 5, 4)).astype(np.float32))
    for kind in (tf.keras.layers.LSTM, tf.keras.layers.GRU, tf.keras.layers.SimpleRNN):
        loop, unrolled = kind(3, return_sequences=True), kind(3, return_sequences=True, unroll=True)
        first, _ = loop(x), unrolled(x)
        unrolled.set_weights(loop.get_weights())
        yield first, unrolled(x)
        yield tf.function(loop)(x), unrolled(x)
        yield kind(3, go_backwards=True, return_state=True)(x)[0].shape, (2, 3)


@case
def other_variants() -> Any:
    with tf.device(ACT):
        optional = tf.experimental.Optional.from_value(tf.constant(3.0) + 1)
    for device in (ACT, CPU):
        with tf.device(device):
            yield optional.has_value(), True
            yield optional.get_value(), 4
    data = tf.data.Dataset.range(6).map(lambda x: tf.cast(x, tf.float32))
    yield list(data.window(2).flat_map(lambda window: window.batch(2))), [[0, 1], [2, 3], [4, 5]]
    for moved in (tf.data.experimental.prefetch_to_device(ACT), tf.data.experimental.copy_to_device(ACT)):
        yield [x + 1 for x in data.apply(moved)], [1, 2, 3, 4, 5, 6]
    ragged = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    splits, values = tf.raw_ops.RaggedTensorFromVariant(
        encoded_ragged=ragged._to_variant(), input_ragged_rank=1, output_ragged_rank=1, Tvalues=tf.float32,
        Tsplits=tf.int64,
    )  # fmt: skip
    yield splits[0], [0, 2, 2, 3]
    yield values, [1, 2, 3]


@case
def variables_across_devices() -> Any:
    for there, back in ((ACT, CPU), (CPU, ACT)):
        with tf.device(there):
            variable, count = tf.Variable(ROWS), tf.Variable(3)
        with tf.device(back):
            variable.assign_add(tf.ones([4, 3]))
            count.assign_add(2)
            yield variable + 0, ROWS + 1
            yield count * 2, 10

        @tf.function
        def function(back: str = back, variable: Any = variable, count: Any = count) -> Any:
            with tf.device(back):
                variable.assign_add(tf.ones([4, 3]))
                count.assign_add(2)
                return variable * 2, count + 1

        whole, integer = function()
        yield whole, (ROWS + 2) * 2
        yield integer, 8
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
    yield table.lookup(tf.constant(["b", "z"])), [2, -1]
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, 0.5, 0, -1)
    dense.insert(tf.constant([7], tf.int64), [2.5])
    yield dense.lookup(tf.constant([7, 8], tf.int64)), [2.5, 0.5]


@case
def lists_in_compiled_functions() -> Any:
    """They may not leave one, and stay whole inside."""
    compiled = tf.function(list_of, jit_compile=True)
    try:
        yield stacked(compiled(tf.constant(ROWS))), ROWS
    except tf.errors.UnimplementedError as error:
        yield "TensorList crossing" in str(error), True
    inside = tf.function(lambda x: stacked(list_of(x)), jit_compile=True)
    yield inside(tf.constant(ROWS)), ROWS


@case
def saved_with_its_lists() -> Any:
    class Running(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
        def __call__(self, x: Any) -> Any:
            return tf.scan(lambda a, b: a + b, x)

    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(Running(), str(Path(folder)))
        yield tf.saved_model.load(folder)(tf.constant(ROWS)), np.cumsum(ROWS, 0)


def compared(got: Any, wanted: Any) -> list[Any]:
    """Whether they agree, and both as text."""
    got, wanted = (np.asarray(tf.nest.map_structure(np.asarray, value)) for value in (got, wanted))
    if got.dtype.kind == "O":
        agree = bool(np.array_equal(got, wanted))
    else:
        agree = got.shape == wanted.shape and bool(np.allclose(got, wanted, rtol=1e-5, atol=1e-6))
    return [agree, str(got), str(wanted)]


if __name__ == "__main__":
    assert tf.constant(1.0).device.endswith("ACT:0")
    run(compared)
