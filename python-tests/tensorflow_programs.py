"""Ordinary TensorFlow programs, each returning tensors. Run on stock TensorFlow and on act, they must agree.

Knows nothing of act: no program names a device.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf


@dataclass(frozen=True)
class Program:
    """A program, and the tolerance for its floats."""

    run: Callable[[], Any]
    # Relative to the largest magnitude of the reference tensor; everything but floats is always exact.
    tolerance: float = 2e-6


PROGRAMS: dict[str, Program] = {}


def program(**needs: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Adds a function to PROGRAMS under its own name."""

    def add(function: Callable[[], Any]) -> Callable[[], Any]:
        PROGRAMS[function.__name__] = Program(function, **needs)
        return function

    return add


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    """Reproducible data made by numpy, so that both sides start from the same bits."""
    return tf.constant(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def integers(*shape: int, seed: int = 0, low: int = -100, high: int = 100, dtype: Any = np.int32) -> Any:
    """Reproducible integers in [low, high)."""
    return tf.constant(np.random.default_rng(seed).integers(low, high, shape).astype(dtype))


# --- int32, whose values TensorFlow keeps in the host's memory wherever they belong ---


@program()
def int32_constants() -> Any:
    return [
        tf.constant(7),
        tf.constant(3) + tf.constant(4),
        tf.constant([[1, -2], [3, 4]]) * 5 - 1,
        tf.constant(-(2**31)),
        tf.constant(np.arange(1000, dtype=np.int32)),
        tf.zeros([3], tf.int32),
        tf.ones([2, 2], tf.int32) * 9,
        tf.fill([2, 3], 11),
        tf.eye(3, dtype=tf.int32),
        tf.identity(tf.constant(12)),
        tf.cast(tf.constant(3.7), tf.int32),
        tf.cast(tf.constant(5), tf.float32) / 2,
        tf.cast(tf.constant(5), tf.int64) * 2**33,
    ]


@program()
def int32_shapes() -> Any:
    x = normal(4, 6, 2)
    return [
        tf.shape(x),
        tf.size(x),
        tf.rank(x),
        tf.reshape(x, tf.stack([tf.shape(x)[0] * 2, -1])),
        tf.broadcast_to(tf.constant([1, 2, 3]), tf.constant([2, 3])),
        tf.tile(tf.constant([[1, 2]]), tf.constant([2, 2])),
        tf.transpose(x, tf.constant([2, 0, 1])),
        tf.broadcast_dynamic_shape(tf.constant([4, 1]), tf.constant([1, 3])),
        tf.shape(tf.zeros(tf.shape(x)[1:])),
    ]


@program()
def int32_slices() -> Any:
    x = integers(6, 8)
    at = tf.constant(2)
    return [
        x[1:5:2, ::-1],
        x[at],
        x[at : at + 2, 3],
        tf.slice(x, tf.constant([1, 2]), tf.constant([3, -1])),
        tf.gather(x, tf.constant([5, 0, 3])),
        tf.gather(x, tf.constant([1, 1]), axis=1),
        tf.gather_nd(x, tf.constant([[0, 1], [5, 7]])),
        tf.tensor_scatter_nd_update(x, tf.constant([[0, 0], [2, 3]]), tf.constant([99, 98])),
        tf.scatter_nd(tf.constant([[1], [3]]), tf.constant([10, 20]), tf.constant([5])),
        tf.concat([x, x + 1], 0),
        tf.stack([x[0], x[1]]),
        tf.unstack(x[:2]),
        tf.split(x, [2, 4], 0),
        tf.pad(x, tf.constant([[1, 0], [0, 2]]), constant_values=-1),
        tf.roll(x, tf.constant(3), tf.constant(1)),
        tf.one_hot(tf.constant([0, 2, 5]), 4, on_value=7, off_value=-7),
        tf.range(3, 20, 4),
        tf.range(tf.constant(5)),
        tf.linspace(0.0, 1.0, tf.constant(5)),
        tf.sequence_mask(tf.constant([1, 3])),
    ]


@program()
def int32_arithmetic() -> Any:
    x, y = integers(5, 7), integers(5, 7, seed=1, low=1)
    return [
        x + y,
        x * y,
        x // y,
        x % y,
        tf.maximum(x, y),
        tf.abs(x),
        -x,
        tf.bitwise.bitwise_xor(x, y),
        tf.bitwise.left_shift(y, 3),
        tf.reduce_sum(x),
        tf.reduce_max(x, 1),
        tf.reduce_prod(x[:, :2], 0),
        tf.cumsum(x, 1),
        tf.argmax(x, 1, output_type=tf.int32),
        tf.where(x > y, x, y),
        tf.matmul(x, tf.transpose(y)),
        tf.cast(x > y, tf.int32),
        tf.sort(x),
        tf.argsort(x),
        tf.math.bincount(tf.abs(x)[0]),
        tf.sign(x),
        tf.pow(y, 2),
        tf.clip_by_value(x, -10, 10),
    ]


@program()
def int32_loops() -> Any:
    @tf.function
    def total(n: Any) -> Any:
        result = tf.constant(0)
        for i in tf.range(n):
            if i % 3 == 0:
                continue
            result += i
        return result

    @tf.function(jit_compile=True)
    def fibonacci(n: Any) -> Any:
        a, b, i = tf.constant(0), tf.constant(1), tf.constant(0)
        while i < n:
            a, b, i = b, a + b, i + 1
        return a, i

    eager = tf.while_loop(
        lambda i, _: i < 5, lambda i, rows: (i + 1, rows * 2 + i), (tf.constant(0), tf.constant([1, 2]))
    )
    switched = [
        tf.switch_case(tf.constant(at), [lambda: tf.constant(5), lambda: tf.constant(6)]) for at in (0, 1)
    ]
    return total(tf.constant(10)), total(4), fibonacci(tf.constant(20)), eager, switched


@program()
def int32_variables() -> Any:
    counter = tf.Variable(3)
    table = tf.Variable(np.arange(12, dtype=np.int32).reshape(3, 4))
    counter.assign_add(4)
    table[1, 2].assign(77)
    table.scatter_nd_add([[0, 0]], [100])

    @tf.function
    def step() -> Any:
        counter.assign_sub(1)
        return counter * 2

    return step(), step(), counter.read_value(), table.read_value(), table[1]


@program()
def int32_random() -> Any:
    """The same seed gives the same values on every device, whether the generator has state or not."""
    tf.random.set_seed(17)
    seed = tf.constant([3, 5])
    compiled = tf.function(lambda seed: tf.random.stateless_uniform([4], seed), jit_compile=True)
    drawn = tf.function(lambda: tf.random.uniform([3]))
    generator = tf.random.Generator.from_seed(42)
    return [
        tf.random.stateless_uniform([4], seed, 0, 1000, tf.int32),
        compiled([7, 9]),
        tf.random.stateless_uniform([4], [7, 9]),
        tf.random.stateless_normal([4], [7, 9]),
        tf.random.experimental.stateless_fold_in(seed, 4),
        tf.random.experimental.stateless_split(seed, 2),
        tf.random.experimental.stateless_shuffle(tf.range(10), seed),
        tf.random.normal([3]),
        tf.random.uniform([3], 0, 50, tf.int32),
        tf.random.shuffle(tf.range(6)),
        drawn(),
        drawn(),
        generator.state,
        generator.uniform([3], 0, 50, tf.int32),
        generator.state,
    ]


# --- eager operators ---


@program(tolerance=1e-5)
def elementwise() -> Any:
    x = normal(33, 7)
    positive = tf.abs(x) + 0.1
    unary = [
        tf.exp,
        tf.tanh,
        tf.sigmoid,
        tf.nn.relu,
        tf.nn.gelu,
        tf.sin,
        tf.atan,
        tf.floor,
        tf.round,
        tf.math.erf,
    ]
    return [f(x) for f in unary] + [tf.sqrt(positive), tf.math.log(positive), tf.math.lgamma(positive), x**3]


@program(tolerance=1e-5)
def reductions() -> Any:
    x = normal(8, 9, 10)
    return [
        tf.reduce_sum(x, [0, 2]),
        tf.reduce_mean(x),
        tf.math.reduce_std(x, 1),
        tf.reduce_logsumexp(x, -1),
        tf.nn.softmax(x),
        tf.norm(x),
        tf.reduce_any(x > 2, 0),
        tf.argmin(x, 1),
        tf.math.top_k(x, 3),
        tf.math.cumprod(x[0], 1),
    ]


@program()
def element_types() -> Any:
    results: list[Any] = []
    for dtype in (np.int8, np.uint8, np.int16, np.int64, np.uint32, np.float16, np.float64):
        x = tf.constant(np.arange(12).reshape(3, 4).astype(dtype))
        results += [x, x + x, tf.cast(x, tf.float32) * 2, tf.concat([x, x], 0)]
    half = tf.cast(normal(8, 8), tf.bfloat16)
    results += [
        half,
        half + half,
        tf.cast(half, tf.float32),
        tf.constant([True, False]),
        ~tf.constant([True, False]),
    ]
    results += [tf.complex(normal(3), normal(3, seed=1)), tf.bitcast(normal(4), tf.int32)]
    return results


@program(tolerance=1e-5)
def matrix_products() -> Any:
    a, b = normal(17, 33), normal(33, 65, seed=1)
    batch = normal(3, 4, 5), normal(3, 5, 6, seed=1)
    return [
        tf.matmul(a, b),
        tf.matmul(a, a, transpose_b=True),
        tf.matmul(*batch),
        tf.einsum("bij,bjk->bki", *batch),
        tf.tensordot(a, b, 1),
        tf.matmul(tf.cast(a, tf.float64), tf.cast(b, tf.float64)),
        tf.linalg.matvec(a, b[:, 0]),
    ]


@program(tolerance=2e-2)
def bfloat16_products() -> Any:
    a, b = tf.cast(normal(16, 48), tf.bfloat16), tf.cast(normal(48, 32, seed=1), tf.bfloat16)

    @tf.function(jit_compile=True)
    def layer(a: Any, b: Any) -> Any:
        return tf.nn.relu(tf.matmul(a, b))

    return tf.matmul(a, b), layer(a, b)


@program()
def int8_products() -> Any:
    a = integers(32, 48, low=-128, high=128, dtype=np.int8)
    b = integers(48, 64, low=-128, high=128, dtype=np.int8, seed=1)

    @tf.function(jit_compile=True)
    def product(a: Any, b: Any) -> Any:
        return tf.matmul(a, b, output_type=tf.int32)

    @tf.function(jit_compile=True)
    def requantized(a: Any, b: Any) -> Any:
        wide = tf.nn.relu(tf.matmul(a, b, output_type=tf.int32))
        return tf.cast(tf.clip_by_value(tf.bitwise.right_shift(wide, 9), -128, 127), tf.int8)

    return product(a, b), requantized(a, b)


@program(tolerance=1e-5)
def convolutions() -> Any:
    x, kernel = normal(2, 11, 12, 3), normal(3, 3, 3, 8, seed=1)
    return [
        tf.nn.conv2d(x, kernel, 1, "SAME"),
        tf.nn.conv2d(x, kernel, 2, "VALID"),
        tf.nn.depthwise_conv2d(x, normal(3, 3, 3, 2, seed=2), [1, 1, 1, 1], "SAME"),
        tf.nn.conv2d_transpose(normal(2, 5, 5, 8), kernel, [2, 10, 10, 3], 2),
        tf.nn.max_pool2d(x, 2, 2, "VALID"),
        tf.nn.avg_pool2d(x, 3, 2, "SAME"),
        tf.image.resize(x, [7, 9]),
    ]


@program(tolerance=1e-4)
def decompositions() -> Any:
    a = normal(6, 6)
    spd = tf.matmul(a, a, transpose_b=True) + 6.0 * tf.eye(6)
    return [
        tf.linalg.svd(a, compute_uv=False),
        tf.linalg.cholesky(spd),
        tf.linalg.inv(spd),
        tf.linalg.det(spd),
        tf.linalg.solve(spd, normal(6, 2)),
        tf.linalg.triangular_solve(tf.linalg.band_part(spd, -1, 0), normal(6, 2)),
        tf.abs(tf.linalg.qr(a).r),
        tf.linalg.eigvalsh(spd),
    ]


@program(tolerance=1e-5)
def fourier() -> Any:
    x = normal(4, 16)
    return [tf.signal.rfft(x), tf.signal.irfft(tf.signal.rfft(x)), tf.signal.fft(tf.cast(x, tf.complex64))]


@program(tolerance=1e-5)
def sorting_and_searching() -> Any:
    x = normal(5, 20)
    return [
        tf.sort(x),
        tf.argsort(x, direction="DESCENDING"),
        tf.where(x > 0.5),
        tf.boolean_mask(x, x > 0),
        tf.unique(integers(30, high=-90)),
        tf.searchsorted(tf.sort(x), x[:, :4]),
        tf.math.segment_sum(x, tf.constant([0, 0, 1, 2, 2])),
        tf.math.unsorted_segment_max(x, tf.constant([2, 0, 0, 2, 1]), 3),
    ]


@program()
def strings_and_ragged() -> Any:
    """Operators that only the host has, between those of the device."""
    words = tf.constant(["a", "bc", "def"])
    ragged = tf.ragged.constant([[1, 2], [], [3, 4, 5]])
    text = tf.strings.as_string(tf.constant([1, 22]) + 1)
    return [
        tf.strings.length(words),
        tf.strings.to_number(tf.constant(["1.5", "2"])) * 2.0,
        tf.strings.length(text),
        ragged.row_lengths(),
        tf.reduce_sum(ragged, 1),
        (ragged + 1).to_tensor(),
        tf.sparse.to_dense(tf.sparse.from_dense(integers(3, 3))),
        tf.strings.to_hash_bucket_fast(words, 10),
    ]


@program(tolerance=1e-5)
def variables() -> Any:
    weights, bias = tf.Variable(normal(4, 3)), tf.Variable(tf.zeros([3]))
    copy = tf.Variable(weights)
    weights.assign_add(tf.ones([4, 3]))
    bias.assign(weights[0])
    copy.scatter_update(tf.IndexedSlices(tf.ones([1, 3]), tf.constant([2])))
    swapped = tf.Variable(bias.read_value())
    swapped.assign(copy[1])
    return weights, bias, copy, swapped, weights @ tf.ones([3, 2])


@program()
def minima_and_maxima_of_nans() -> Any:
    """Which are NaN; compared as integers, as a NaN equals nothing."""
    x = tf.constant([[np.nan, 1.0], [2.0, np.nan], [-1.0, 3.0]])
    results = [tf.reduce_max(x), tf.reduce_min(x), tf.reduce_max(x, 1), tf.reduce_min(x, 0)]
    results += [tf.maximum(x, 0.5), tf.minimum(0.5, x), tf.nn.relu(x), tf.clip_by_value(x, 0.0, 1.0)]
    long = tf.reshape(tf.tile(x, [400, 1]), [-1])
    results += [tf.reduce_max(long), tf.reduce_min(long)]
    return [tf.cast(tf.math.is_nan(result), tf.int32) for result in results]


@program(tolerance=1e-5)
def parts_of_variables() -> Any:
    """Reads and updates at indices, eagerly and in functions, with gradients."""
    results: list[Any] = []
    for dtype in (tf.float32, tf.float64, tf.int32, tf.int64):
        table = tf.Variable(tf.cast(integers(6, 3), dtype))
        at, values = [[2], [4]], tf.cast(integers(2, 3, seed=1), dtype)
        results += [tf.gather_nd(table, [[1, 2], [5, 0]]), table.gather_nd(at), table.sparse_read([3, 3])]
        table.scatter_nd_max(at, values)
        table.scatter_nd_min(at, values - 5)
        results.append(table.read_value())

        def gathered(table: Any = table) -> Any:
            return tf.gather_nd(table, [[0, 1], [4, 2]]) * 2

        results += [tf.function(gathered)(), gathered()]
        if dtype.is_floating:
            with tf.GradientTape() as tape:
                total = tf.reduce_sum(tf.gather_nd(table, [[1], [1], [3]]) ** 2)
            results.append(tf.convert_to_tensor(tape.gradient(total, table)))
    return results


@program(tolerance=1e-5)
def gradients() -> Any:
    x = tf.Variable(normal(3, 4))
    table = tf.Variable(normal(10, 4, seed=1))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.tanh(x) ** 3)
        first = inner.gradient(y, x)
        squared = tf.reduce_sum(first**2)
    second = outer.gradient(squared, x)
    with tf.GradientTape() as tape:
        rows = tf.nn.embedding_lookup(table, tf.constant([1, 3, 1]))
        loss = tf.reduce_sum(rows**2)
    slices = tape.gradient(loss, table)
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        z = tf.sin(x)
    return first, second, tf.convert_to_tensor(slices), forward.jvp(z)


@program(tolerance=1e-5)
def control_flow() -> Any:
    @tf.function
    def clipped(x: Any) -> Any:
        if tf.reduce_sum(x) > 0:
            return x * 2
        return -x

    @tf.function(jit_compile=True)
    def scan(x: Any) -> Any:
        rows = tf.TensorArray(tf.float32, size=8)
        state = tf.zeros([4])
        for i in tf.range(8):
            state = tf.tanh(state + x[i])
            rows = rows.write(i, state)
        return rows.stack()

    mapped = tf.map_fn(lambda row: tf.reduce_sum(row) * row, normal(5, 3))
    folded = tf.scan(lambda a, b: a * 0.5 + b, normal(5, 3))
    return clipped(tf.ones([3])), clipped(-tf.ones([3])), scan(normal(8, 4)), mapped, folded


@program(tolerance=1e-5)
def lists_of_tensors() -> Any:
    """Outside of compiled functions loops and their gradients keep lists, for which XLA has no value."""

    @tf.function
    def states(x: Any) -> Any:
        rows, state = tf.TensorArray(tf.float32, size=8), tf.zeros([4])
        for i in tf.range(8):
            state = tf.tanh(state + x[i])
            rows = rows.write(i, state)
        return rows.stack()

    @tf.function
    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(states(x) ** 2)
        return tape.gradient(loss, x)

    @tf.function
    def growing() -> Any:
        squares = tf.TensorArray(tf.int32, size=0, dynamic_size=True, clear_after_read=False)
        for i in tf.range(5):
            squares = squares.write(i, i * i)
        return squares.stack(), squares.size(), squares.read(2)

    @tf.function
    def cut(x: Any) -> Any:
        parts = tf.TensorArray(tf.float32, 2, infer_shape=False).split(x, [2, 6])
        return parts.concat(), tf.TensorArray(tf.float32, 8).unstack(x).gather([1, 3])

    x = normal(8, 4)
    mapped = tf.function(lambda x: tf.map_fn(lambda row: row * tf.reduce_sum(row), x))(x)
    words = tf.map_fn(lambda word: word + "!", tf.constant(["a", "b"]))
    return states(x), gradient(x), growing(), cut(x), mapped, words


@program(tolerance=1e-5)
def vectorized() -> Any:
    x = normal(6, 5)
    return tf.vectorized_map(lambda row: tf.reduce_sum(row**2) + row[0], x)


@program(tolerance=1e-5)
def train_step_compiled() -> Any:
    weights, bias = tf.Variable(normal(8, 4) * 0.1), tf.Variable(tf.zeros([4]))
    x, labels = normal(32, 8, seed=3), integers(32, low=0, high=4, seed=4)

    @tf.function(jit_compile=True)
    def step() -> Any:
        with tf.GradientTape() as tape:
            logits = tf.matmul(x, weights) + bias
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for variable, gradient in zip((weights, bias), tape.gradient(loss, (weights, bias)), strict=True):
            variable.assign_sub(0.5 * gradient)
        return loss

    return [step() for _ in range(10)], weights, bias


@program(tolerance=1e-5)
def datasets() -> Any:
    """tf.data stays on the host; what it yields goes to the device."""
    data = tf.data.Dataset.from_tensor_slices(
        (np.arange(20, dtype=np.float32), np.arange(20, dtype=np.int32))
    )
    data = (
        data.map(lambda x, y: (x * 2, y + 1), num_parallel_calls=2).shuffle(20, seed=1).batch(6).prefetch(2)
    )
    total, count = tf.constant(0.0), tf.constant(0)
    for x, y in data:
        total += tf.reduce_sum(x)
        count += tf.reduce_sum(y)
    generated = tf.data.Dataset.from_generator(
        lambda: iter(range(5)), output_signature=tf.TensorSpec([], tf.int32)
    )

    @tf.function
    def over(data: Any) -> Any:
        result = tf.constant(0)
        for value in data:
            result += value * value
        return result

    return total, count, over(generated), list(tf.data.Dataset.range(4).map(lambda v: v + 1))


@program(tolerance=1e-5)
def saved_model() -> Any:
    class Scaled(tf.Module):
        def __init__(self) -> None:
            self.scale = tf.Variable(normal(3))
            self.steps = tf.Variable(0)

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
        def __call__(self, x: Any) -> Any:
            self.steps.assign_add(1)
            return x * self.scale + tf.cast(self.steps, tf.float32)

    with tempfile.TemporaryDirectory() as folder:
        model = Scaled()
        first = model(normal(2, 3))
        tf.saved_model.save(model, folder)
        loaded = tf.saved_model.load(folder)
        second = loaded(normal(4, 3))
        signature = loaded.signatures["serving_default"](x=normal(1, 3))
        checkpoint = tf.train.Checkpoint(model=model).write(str(Path(folder) / "checkpoint"))
        model.scale.assign([0.0, 0.0, 0.0])
        tf.train.Checkpoint(model=model).read(checkpoint)
        return first, second, signature, loaded.steps, model.scale


# --- Keras ---


def small_data() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Images of two classes."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, 64)
    images = rng.standard_normal((64, 8, 8, 1)).astype(np.float32) + labels[:, None, None, None]
    return images, labels


def set_weights(model: Any) -> None:
    """Weights from numpy: initializers of Keras depend on the device."""
    rng = np.random.default_rng(11)
    model.set_weights(
        [
            np.asarray(0.2 * rng.standard_normal(w.shape) + (0.5 if w.ndim == 1 else 0), np.float32)
            for w in model.get_weights()
        ]
    )


def trained(model: Any, x: Any, y: Any, **fit: Any) -> list[Any]:
    """Losses, weights, predictions and evaluation after some training."""
    set_weights(model)
    history = model.fit(x, y, shuffle=False, verbose=0, **fit)
    return [
        np.asarray([value for values in history.history.values() for value in values], np.float32),
        model.predict(x, verbose=0),
        np.asarray(model.evaluate(x, y, verbose=0), np.float32),
        *model.get_weights(),
    ]


@program(tolerance=2e-4)
def keras_cnn() -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(4, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Conv2D(8, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(2),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(0.05, momentum=0.9), loss, metrics=["accuracy"])
    x, y = small_data()
    return trained(model, x, y, epochs=2, batch_size=16)


@program(tolerance=1e-3)
def keras_lstm_saved_and_loaded() -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((6,), dtype="int32"),
            layers.Embedding(20, 8),
            layers.LSTM(8, return_sequences=True),
            layers.GRU(8),
            layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse", jit_compile=False)
    x = np.random.default_rng(2).integers(0, 20, (16, 6)).astype(np.int32)
    y = x.mean(1, keepdims=True).astype(np.float32) / 10
    results = trained(model, x, y, epochs=1, batch_size=8)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.keras")
        model.save(path)
        again = tf.keras.models.load_model(path)
        exported = str(Path(folder) / "exported")
        model.export(exported, verbose=False)
        loaded = tf.saved_model.load(exported)
        served = loaded.serve(x)
        return results, again.predict(x, verbose=0), served


@program(tolerance=1e-3)
def keras_attention_compiled() -> Any:
    layers = tf.keras.layers
    inputs = layers.Input((10, 16))
    attended = layers.MultiHeadAttention(2, 8)(inputs, inputs, use_causal_mask=True)
    x = layers.LayerNormalization()(inputs + attended)
    outputs = layers.Dense(3, activation="softmax")(layers.Flatten()(layers.Dense(16, activation="gelu")(x)))
    model = tf.keras.Model(inputs, outputs)
    model.compile("sgd", "categorical_crossentropy", jit_compile=True)
    rng = np.random.default_rng(3)
    x, y = (
        rng.standard_normal((16, 10, 16)).astype(np.float32),
        np.eye(3, dtype=np.float32)[rng.integers(0, 3, 16)],
    )
    return trained(model, x, y, epochs=1, batch_size=8)


@program(tolerance=1e-3)
def keras_custom_loop() -> Any:
    """A loop of one's own, with clipping, a schedule and a metric."""
    model = tf.keras.Sequential(
        [tf.keras.layers.Input((8,)), tf.keras.layers.Dense(16, "tanh"), tf.keras.layers.Dense(1)]
    )
    set_weights(model)
    schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.9)
    optimizer = tf.keras.optimizers.Adam(schedule, clipnorm=1.0)
    metric = tf.keras.metrics.Mean()
    x, y = normal(32, 8), normal(32, 1, seed=1)

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        optimizer.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
        )
        metric.update_state(loss)
        return loss

    losses = [
        step(bx, by) for _ in range(3) for bx, by in tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
    ]
    return losses, metric.result(), model.get_weights(), optimizer.iterations
