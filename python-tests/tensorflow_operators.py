"""Operators of TensorFlow, eagerly and one by one, over the element types: what each gives, for a comparison.

``tensorflow_operators.py FILE [all]`` writes, for every operator and common type (``all``: every type), its
results or its error. Knows nothing of act: no operator names a device.
"""

from __future__ import annotations

import pickle
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
NUMBERS = REAL + COMPLEX
EVERY = (*NUMBERS, "bool")

# Each is handled in a way of its own somewhere; the others are like one of them.
COMMON = ("uint8", "int32", "int64", "bfloat16", "float32", "complex64", "bool")

# Name, types, and the operator; it gets a function that makes data of the type.
Data = Callable[..., Any]
OPERATORS: list[tuple[str, tuple[str, ...], Callable[[Data], Any]]] = []


def add(types: tuple[str, ...], **operators: Callable[[Data], Any]) -> None:
    OPERATORS.extend((name, types, operator) for name, operator in operators.items())


def maker(name: str, dtype: str) -> Data:
    """Data by numpy, the same in every process. ``low`` and ``high`` bound integers and floats."""

    def made(*shape: int, low: float = -8, high: float = 9, seed: int = 0) -> Any:
        rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
        if dtype == "bool":
            return tf.constant(rng.random(shape) > 0.5)
        if dtype in UNSIGNED:
            low = max(low, 0)
        if dtype in INTEGERS:
            return tf.constant(rng.integers(int(low), int(high), shape).astype(dtype))
        values = rng.uniform(low, high, shape)
        if dtype in COMPLEX:
            values = values + 1j * rng.uniform(low, high, shape)
        return tf.constant(values, tf.as_dtype(dtype))

    return made


def unary(names: str) -> dict[str, Callable[[Data], Any]]:
    """Functions of one value, on what all of them are defined for."""

    def on_data(function: Any) -> Callable[[Data], Any]:
        return lambda d: function(d(30, low=0.1, high=0.9))

    return {f"{name}_of": on_data(getattr(tf.math, name)) for name in names.split()}


# --- elementwise ---

add(
    NUMBERS,
    add=lambda d: d(3, 5) + d(3, 5, seed=1),
    subtract=lambda d: d(3, 5) - d(5, seed=1),
    multiply=lambda d: d(3, 5) * d(3, 1, seed=1),
    negative=lambda d: -d(3, 5),
    square=lambda d: tf.square(d(3, 5)),
    equal=lambda d: tf.equal(d(40), d(40, seed=1)),
    add_n=lambda d: tf.add_n([d(4), d(4, seed=1), d(4, seed=2)]),
    squared_difference=lambda d: tf.math.squared_difference(d(9), d(9, seed=1)),
)
add(
    REAL,
    floordiv=lambda d: d(40) // d(40, low=1, seed=1),
    floormod=lambda d: d(40) % d(40, low=1, seed=1),
    negative_divisor=lambda d: (d(40) // -d(40, low=1, seed=1), d(40) % -d(40, low=1, seed=1)),
    truncatediv=lambda d: tf.truncatediv(d(40), d(40, low=1, seed=1)),
    truediv=lambda d: d(9) / d(9, low=1, seed=1),
    maximum=lambda d: tf.maximum(d(40), d(40, seed=1)),
    minimum=lambda d: tf.minimum(d(40), d(40, seed=1)),
    less=lambda d: (d(40) < d(40, seed=1), d(40) >= d(40, seed=1)),
    absolute=lambda d: tf.abs(d(40)),
    sign=lambda d: tf.sign(d(40)),
    clip=lambda d: tf.clip_by_value(d(40), d(), d(low=8, high=9)),
    relu=lambda d: tf.nn.relu(d(40)),
    power=lambda d: tf.pow(d(20, low=1, high=4), d(20, low=0, high=4, seed=1)),
)
add(
    INTEGERS,
    bitwise=lambda d: [
        getattr(tf.bitwise, f"bitwise_{of}")(d(30), d(30, seed=1)) for of in ("and", "or", "xor")
    ],
    shifts=lambda d: (
        tf.bitwise.left_shift(d(30), d(30, low=0, high=5, seed=1)),
        tf.bitwise.right_shift(d(30), d(30, low=0, high=5, seed=1)),
    ),
    invert=lambda d: tf.bitwise.invert(d(30)),
    population_count=lambda d: tf.raw_ops.PopulationCount(x=d(30)),
)
add(
    FLOATS + COMPLEX,
    **unary("exp expm1 log log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh atanh"),
    **unary("sigmoid reciprocal"),
    acosh_of=lambda d: tf.math.acosh(d(30, low=1.1, high=4)),
    division=lambda d: d(9) / d(9, low=1, seed=1),
)
add(
    FLOATS,
    **unary("erf erfc erfinv ndtri lgamma digamma log_sigmoid softplus softsign"),
    rounding=lambda d: [f(d(40) / 2) for f in (tf.floor, tf.math.ceil, tf.round, tf.math.rint)],
    halves_round_to_even=lambda d: tf.round(tf.cast(tf.range(-8, 8), d(1).dtype) / 2),
    atan2=lambda d: tf.atan2(d(20), d(20, seed=1)),
    finite=lambda d: [
        f(d(9) / d(9, low=0, high=0)) for f in (tf.math.is_nan, tf.math.is_inf, tf.math.is_finite)
    ],
    activations=lambda d: [f(d(30)) for f in (tf.nn.elu, tf.nn.selu, tf.nn.relu6, tf.nn.leaky_relu)],
    xlogy=lambda d: (
        tf.math.xlogy(d(9, low=0), d(9, low=1, seed=1)),
        tf.math.xdivy(d(9), d(9, low=1, seed=1)),
    ),
    softmax=lambda d: (tf.nn.softmax(d(4, 9)), tf.nn.log_softmax(d(4, 9))),
    igamma=lambda d: tf.math.igamma(d(9, low=1), d(9, low=1, seed=1)),
    nextafter=lambda d: tf.math.nextafter(d(9), d(9, seed=1)),
)
add(
    COMPLEX,
    parts=lambda d: (
        tf.math.real(d(9)),
        tf.math.imag(d(9)),
        tf.math.conj(d(9)),
        tf.abs(d(9)),
        tf.math.angle(d(9)),
    ),
)
add(("bool",), logic=lambda d: (d(9) & d(9, seed=1), d(9) | d(9, seed=1), ~d(9), d(9) ^ d(9, seed=1)))
add(("bool",), reductions=lambda d: (tf.reduce_all(d(4, 3), 1), tf.reduce_any(d(4, 3), 0)))
for target in COMMON:
    add(EVERY, **{f"cast_to_{target}": lambda d, target=target: tf.cast(d(20, low=0, high=9), target)})

# XLA has no casts between bits of complex numbers and others.
add(
    REAL,
    bitcast=lambda d: tf.bitcast(d(8), tf.uint8) if d(1).dtype.size > 1 else tf.bitcast(d(8), tf.int8),
)

# --- reductions ---

add(
    NUMBERS,
    sum=lambda d: (tf.reduce_sum(d(4, 5)), tf.reduce_sum(d(4, 5), 1), tf.reduce_sum(d(4, 5, 2), [0, -1])),
    product=lambda d: tf.reduce_prod(d(2, 3, low=1, high=4), 0),
    mean=lambda d: tf.reduce_mean(d(4, 8, low=0), -1, keepdims=True),
    cumsum=lambda d: (tf.cumsum(d(4, 5), 1, reverse=True), tf.cumsum(d(4, 5), exclusive=True)),
    cumprod=lambda d: tf.math.cumprod(d(5, low=1, high=3)),
    segment_sum=lambda d: tf.math.segment_sum(d(5, 2), tf.constant([0, 0, 1, 3, 3])),
    unsorted_segment_sum=lambda d: tf.math.unsorted_segment_sum(d(5, 2), tf.constant([2, 0, -1, 2, 1]), 4),
)
add(
    REAL,
    extrema=lambda d: (tf.reduce_max(d(4, 5), 1), tf.reduce_min(d(4, 5))),
    arg_extrema=lambda d: (tf.argmax(d(4, 9), 1), tf.argmin(d(4, 9), 0, output_type=tf.int32)),
    top_k=lambda d: tf.math.top_k(d(3, 9), 4),
    sorted=lambda d: (tf.sort(d(3, 9)), tf.sort(d(3, 9), direction="DESCENDING")),
    segments=lambda d: (
        tf.math.segment_max(d(5), tf.constant([0, 0, 1, 2, 2])),
        tf.math.segment_mean(d(5), tf.constant([0, 0, 1, 2, 2])),
        tf.math.unsorted_segment_min(d(5), tf.constant([1, 0, 1, 0, 1]), 2),
    ),
    searchsorted=lambda d: tf.searchsorted(tf.sort(d(9)), d(4, seed=1), side="right"),
    unique=lambda d: tf.unique(d(30, low=0, high=5)),
    bucketize=lambda d: tf.raw_ops.Bucketize(input=d(9), boundaries=[-2.0, 0.0, 4.0]),
)
add(
    FLOATS,
    deviations=lambda d: (tf.math.reduce_std(d(4, 9), 1), tf.math.reduce_variance(d(4, 9)), tf.norm(d(4, 9))),
)
add(FLOATS, logsumexp=lambda d: tf.reduce_logsumexp(d(4, 9), 1))

# --- data movement; indices and shapes are int32 and int64 ---

add(
    EVERY,
    reshape=lambda d: tf.reshape(d(4, 6), tf.constant([3, -1])),
    transpose=lambda d: tf.transpose(d(2, 3, 4), tf.constant([2, 0, 1])),
    concat=lambda d: tf.concat([d(2, 3), d(2, 3, seed=1)], tf.constant(-1)),
    stack=lambda d: (tf.stack([d(3), d(3, seed=1)], 1), tf.unstack(d(2, 3))),
    split=lambda d: tf.split(d(6, 2), [1, 3, 2]),
    tile=lambda d: tf.tile(d(2, 3), tf.constant([2, 2])),
    pads=lambda d: tf.pad(d(2, 3), tf.constant([[1, 0], [2, 1]])),
    reflected=lambda d: (
        tf.pad(d(4, 5), [[1, 2], [2, 1]], "REFLECT"),
        tf.pad(d(4, 5), [[1, 2], [2, 1]], "SYMMETRIC"),
    ),
    strided=lambda d: (d(7, 8)[::-1, 6:1:-2], d(7, 8)[-3:, None, ..., 1], d(7, 8)[5:0:-3], d(7, 8)[2:2]),
    sliced=lambda d: tf.slice(d(7, 8), tf.constant([2, 1]), tf.constant([-1, 4])),
    gather=lambda d: (
        tf.gather(d(7, 3), tf.constant([6, 0, 2])),
        tf.gather(d(7, 3), tf.constant([2, 0], tf.int64), axis=1),
    ),
    batch_gather=lambda d: tf.gather(d(2, 5), tf.constant([[4, 0], [1, 1]]), batch_dims=1),
    gather_nd=lambda d: tf.gather_nd(d(4, 5), tf.constant([[3, 4], [0, 0]])),
    scatter_nd=lambda d: tf.scatter_nd(tf.constant([[4], [1]]), d(2, 3), tf.constant([6, 3])),
    scatter_update=lambda d: tf.tensor_scatter_nd_update(d(6), tf.constant([[0], [5]]), d(2, seed=1)),
    reverse=lambda d: (
        tf.reverse(d(3, 4), tf.constant([1])),
        tf.reverse_sequence(d(2, 5), tf.constant([3, 5]), 1),
    ),
    roll=lambda d: tf.roll(d(3, 4), tf.constant([1, -2]), tf.constant([0, 1])),
    where=lambda d: tf.where(d(9) != d(9, seed=1), d(9), d(9, seed=1)),
    true_indices=lambda d: tf.where(d(4, 5, low=0, high=2)),
    one_hot=lambda d: tf.one_hot(tf.constant([0, 3, -1, 2]), tf.constant(4), dtype=d(1).dtype),
    filled=lambda d: (tf.zeros_like(d(3)), tf.ones_like(d(3)), tf.fill(tf.constant([2, 3]), d())),
    expanded=lambda d: (tf.squeeze(d(1, 3, 1)), d(3)[:, None], tf.broadcast_to(d(3), tf.constant([2, 3]))),
    band_part=lambda d: tf.linalg.band_part(d(4, 5), 1, 2),
    diagonal=lambda d: (
        tf.linalg.diag(d(3)),
        tf.linalg.diag_part(d(3, 4)),
        tf.linalg.set_diag(d(3, 4), d(3, seed=1)),
    ),
    space_and_depth=lambda d: (
        tf.nn.space_to_depth(d(1, 4, 4, 2), 2),
        tf.nn.depth_to_space(d(1, 2, 2, 8), 2),
    ),
    space_and_batch=lambda d: tf.space_to_batch(d(1, 4, 4, 2), [2, 2], [[0, 0], [0, 0]]),
    meshgrid=lambda d: tf.meshgrid(d(3), d(2)),
    repeat=lambda d: tf.repeat(d(3), tf.constant([2, 0, 3])),
    shapes=lambda d: (tf.shape(d(2, 3)), tf.size(d(2, 3)), tf.rank(d(2, 3)), tf.shape_n([d(2), d(3, 1)])),
    mask=lambda d: tf.boolean_mask(d(5, 2), [True, False, True, True, False]),
    dynamic_partition=lambda d: tf.dynamic_partition(d(6), tf.constant([0, 1, 2, 1, 0, 0]), 3),
    dynamic_stitch=lambda d: tf.dynamic_stitch([[0, 3], [2, 1]], [d(2), d(2, seed=1)]),
    assigned=lambda d: [v.assign(d(4, seed=1)) for v in [tf.Variable(d(4))]],
)
add(
    NUMBERS,
    scatter_add=lambda d: tf.tensor_scatter_nd_add(d(6), tf.constant([[0], [5], [0]]), d(3, seed=1)),
    variable=lambda d: [
        (v.assign_add(d(4)), v.assign_sub(d(4, seed=1)), v[1:3]) for v in [tf.Variable(d(4))]
    ],
)
add(
    ("int32", "int64", "float32", "float64"),
    ranges=lambda d: (
        tf.range(tf.cast(9, d(1).dtype), tf.cast(-3, d(1).dtype), tf.cast(-4, d(1).dtype)),
        tf.range(tf.cast(9, d(1).dtype), delta=tf.cast(2, d(1).dtype)),
    ),
)
add(
    ("int32", "int64"), bincount=lambda d: tf.math.bincount(tf.cast(d(20, low=0), tf.int32), dtype=d(1).dtype)
)
add(("int32", "int64"), sequence_mask=lambda d: tf.sequence_mask(d(3, low=0, high=5), 6))
add(
    ("int32", "int64"),
    indices=lambda d: (
        tf.unravel_index(d(4, low=0), [3, 4]),
        tf.math.confusion_matrix(d(5, low=0, high=3), d(5, low=0, high=3, seed=1)),
    ),
    indexed_shapes=lambda d: (
        tf.reshape(tf.range(12), d(1).dtype.as_numpy_dtype([3, 4])),
        tf.zeros(tf.cast([2, 3], d(1).dtype)),
    ),
    loop_counters=lambda d: tf.while_loop(
        lambda i, s: i < 5, lambda i, s: (i + 1, s * 3 - i), [tf.cast(0, d(1).dtype), d(3)]
    ),
)

# --- linear algebra ---

add(
    NUMBERS,
    matmul=lambda d: (d(3, 4) @ d(4, 5, seed=1), tf.matmul(d(2, 3, 4), d(2, 5, 4, seed=1), transpose_b=True)),
    einsum=lambda d: tf.einsum("bij,bjk->bk", d(2, 3, 4), d(2, 4, 5, seed=1)),
    tensordot=lambda d: tf.tensordot(d(3, 4), d(4, 2, seed=1), 1),
    matvec=lambda d: tf.linalg.matvec(d(3, 4), d(4, seed=1)),
)


def definite(d: Data, size: int = 5) -> Any:
    a = d(size, size, low=-1, high=1)
    return tf.matmul(a, a, adjoint_b=True) + tf.cast(size, a.dtype) * tf.eye(size, dtype=a.dtype)


add(
    ("float32", "float64", "complex64", "complex128"),
    cholesky=lambda d: tf.linalg.cholesky(definite(d)),
    solve=lambda d: tf.linalg.solve(definite(d), d(5, 2, seed=1)),
    triangular=lambda d: tf.linalg.triangular_solve(definite(d), d(5, 2, seed=1), adjoint=True),
    inverse=lambda d: (tf.linalg.inv(definite(d)), tf.linalg.det(definite(d))),
    qr=lambda d: tf.abs(tf.linalg.qr(d(5, 3)).r),
    singular_values=lambda d: tf.linalg.svd(d(5, 3), compute_uv=False),
    eigenvalues=lambda d: tf.linalg.eigvalsh(definite(d)),
    expm=lambda d: tf.linalg.expm(definite(d) / 9),
    cross=lambda d: tf.linalg.cross(d(2, 3), d(2, 3, seed=1)),
)
add(
    ("float32", "float64"),
    lstsq=lambda d: tf.linalg.lstsq(d(5, 3), d(5, 2, seed=1)),
    rfft=lambda d: tf.signal.irfft(tf.signal.rfft(d(3, 16))),
)
add(COMPLEX, fft=lambda d: (tf.signal.fft(d(3, 16)), tf.signal.ifft2d(d(4, 8)), tf.signal.fft(d(2, 15))))

# --- neural networks and images ---

add(
    FLOATS,
    conv2d=lambda d: (
        tf.nn.conv2d(d(2, 9, 8, 3), d(3, 3, 3, 4, seed=1), 2, "SAME"),
        tf.nn.conv2d(d(1, 9, 8, 3), d(3, 2, 3, 4, seed=1), 1, "VALID", dilations=2),
    ),
    conv1d=lambda d: tf.nn.conv1d(d(2, 9, 3), d(3, 3, 4, seed=1), 1, "SAME"),
    conv3d=lambda d: tf.nn.conv3d(d(1, 5, 5, 5, 2), d(2, 2, 2, 2, 3, seed=1), [1] * 5, "VALID"),
    grouped=lambda d: tf.nn.conv2d(d(1, 6, 6, 4), d(3, 3, 2, 4, seed=1), 1, "SAME"),
    depthwise=lambda d: tf.nn.depthwise_conv2d(d(1, 6, 6, 3), d(3, 3, 3, 2, seed=1), [1] * 4, "SAME"),
    separable=lambda d: tf.nn.separable_conv2d(
        d(1, 6, 6, 3), d(3, 3, 3, 2, seed=1), d(1, 1, 6, 4, seed=2), [1] * 4, "SAME"
    ),
    transposed=lambda d: tf.nn.conv2d_transpose(d(1, 4, 4, 3), d(3, 3, 2, 3, seed=1), [1, 8, 8, 2], 2),
    pooling=lambda d: (
        tf.nn.max_pool2d(d(1, 7, 7, 2), 3, 2, "SAME"),
        tf.nn.avg_pool2d(d(1, 7, 7, 2), 2, 2, "VALID"),
    ),
    pooling3d=lambda d: (
        tf.nn.max_pool3d(d(1, 4, 4, 4, 2), 2, 2, "VALID"),
        tf.nn.avg_pool3d(d(1, 4, 4, 4, 2), 2, 2, "SAME"),
    ),
    normalization=lambda d: tf.nn.batch_normalization(d(4, 3), d(3), d(3, low=1), d(3), d(3), 1e-3),
    moments=lambda d: tf.nn.moments(d(4, 3), [0]),
    bias=lambda d: tf.nn.bias_add(d(4, 3), d(3, seed=1)),
    cross_entropy=lambda d: (
        tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(d(4, 5)), d(4, 5, seed=1)),
        tf.nn.sparse_softmax_cross_entropy_with_logits(tf.constant([0, 4, 2, 1]), d(4, 5)),
        tf.nn.sigmoid_cross_entropy_with_logits(tf.nn.sigmoid(d(9)), d(9, seed=1)),
    ),
    l2=lambda d: (tf.nn.l2_loss(d(9)), tf.nn.l2_normalize(d(3, 4), 1)),
    lrn=lambda d: tf.nn.lrn(d(1, 3, 3, 7)),
    embedding=lambda d: tf.nn.embedding_lookup(d(9, 3), tf.constant([[1, 8], [0, 1]])),
    gradient=lambda d: convolution_gradients(d),
    pool_gradient=lambda d: pooling_gradients(d),
)


def convolution_gradients(d: Data) -> Any:
    x, kernel = d(1, 6, 6, 2, low=-1, high=1), d(3, 3, 2, 3, low=-1, high=1, seed=1)
    with tf.GradientTape() as tape:
        tape.watch([x, kernel])
        y = tf.reduce_sum(tf.nn.conv2d(x, kernel, 2, "SAME"))
    return tape.gradient(y, [x, kernel])


def pooling_gradients(d: Data) -> Any:
    x = d(1, 6, 6, 2)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        a, b = (
            tf.reduce_sum(tf.nn.max_pool2d(x, 2, 2, "SAME")),
            tf.reduce_sum(tf.nn.avg_pool2d(x, 3, 2, "SAME")),
        )
    return tape.gradient(a, x), tape.gradient(b, x)


add(
    ("float32",),
    resized=lambda d: [
        tf.image.resize(d(1, 5, 6, 2), [8, 4], method)
        for method in ("bilinear", "nearest", "bicubic", "area")
    ],
    colours=lambda d: (
        tf.image.rgb_to_hsv(d(3, 3, 3, low=0, high=1)),
        tf.image.hsv_to_rgb(d(3, 3, 3, low=0, high=1)),
        tf.image.rgb_to_grayscale(d(3, 3, 3, low=0, high=1)),
        tf.image.adjust_contrast(d(3, 3, 3, low=0, high=1), 2.0),
        tf.image.adjust_hue(d(3, 3, 3, low=0, high=1), 0.2),
        tf.image.adjust_saturation(d(3, 3, 3, low=0, high=1), 0.5),
        tf.image.per_image_standardization(d(5, 5, 3)),
    ),
    moved=lambda d: (
        tf.image.flip_left_right(d(3, 4, 2)),
        tf.image.rot90(d(3, 4, 2)),
        tf.image.central_crop(d(6, 6, 2), 0.5),
        tf.image.pad_to_bounding_box(d(3, 4, 2), 1, 1, 6, 6),
        tf.image.extract_patches(d(1, 6, 6, 1), [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
    ),
    boxes=lambda d: (
        tf.image.non_max_suppression(
            tf.constant([[0, 0, 1, 1], [0, 0, 0.9, 1], [0, 2, 1, 3]], tf.float32),
            tf.constant([0.9, 0.8, 0.7]),
            3,
        ),
        tf.image.crop_and_resize(d(1, 6, 6, 1), [[0.1, 0.1, 0.8, 0.9]], [0], [4, 4]),
    ),
    edges=lambda d: (tf.image.sobel_edges(d(1, 5, 5, 1)), tf.image.total_variation(d(2, 5, 5, 1))),
    ssim=lambda d: tf.image.psnr(d(6, 6, 3, low=0, high=1), d(6, 6, 3, low=0, high=1, seed=1), 1.0),
)
add(
    ("uint8",),
    bytes=lambda d: (
        tf.image.convert_image_dtype(d(3, 3, 3, high=255), tf.float32),
        tf.image.adjust_brightness(d(3, 3, 3, high=255), 0.1),
    ),
)

# --- random numbers from fixed seeds ---

add(
    FLOATS,
    stateless=lambda d: [
        f([2, 5], [7, 3], dtype=d(1).dtype)
        for f in (
            tf.random.stateless_uniform,
            tf.random.stateless_normal,
            tf.random.stateless_truncated_normal,
        )
    ],
    gamma=lambda d: tf.random.stateless_gamma([5], [7, 3], tf.cast(2.5, d(1).dtype), dtype=d(1).dtype),
)
add(
    ("int32", "int64", "uint32", "uint64"),
    stateless_integers=lambda d: tf.random.stateless_uniform([9], [7, 3], None, None, d(1).dtype),
    bounded=lambda d: tf.random.stateless_uniform(
        [9], [7, 3], d(low=0, high=1), d(low=8, high=9), d(1).dtype
    ),
)
add(
    ("int32", "int64"),
    drawn=lambda d: (
        tf.random.stateless_categorical(tf.constant([[0.1, 2.0, 0.3]]), 8, [7, 3], d(1).dtype),
        tf.random.stateless_binomial([5], [7, 3], 9.0, 0.4, d(1).dtype),
        tf.random.stateless_poisson([5], [7, 3], 4.0, d(1).dtype),
        tf.random.experimental.stateless_shuffle(tf.cast(tf.range(9), d(1).dtype), [7, 3]),
    ),
)


def run(file: Path, chosen: tuple[str, ...]) -> None:
    results: dict[str, Any] = {}
    for name, types, operator in OPERATORS:
        for dtype in (dtype for dtype in types if dtype in chosen):
            print(name, dtype, file=sys.stderr, flush=True)
            try:
                leaves = tf.nest.flatten(operator(maker(name, dtype)))
                results[f"{name} {dtype}"] = [np.asarray(leaf) for leaf in leaves]
            except Exception as error:
                results[f"{name} {dtype}"] = f"{type(error).__name__}: {error}"
    file.write_bytes(pickle.dumps((tf.constant(1.0).device, results)))


if __name__ == "__main__":
    run(Path(sys.argv[1]), EVERY if sys.argv[2:] == ["all"] else COMMON)
