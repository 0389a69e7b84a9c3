"""Ordinary JAX programs, each returning arrays. They are run on CPU and on act, and must agree.

Knows nothing of act: a program may use JAX and numpy only. Where results are unique only up to signs or order
(eigenvectors, singular vectors) a program returns what is unique.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclass(frozen=True)
class Program:
    """A program and what it needs: how many devices, 64-bit types, the float tolerance for its results."""

    run: Callable[[], Any]
    devices: int = 1
    x64: bool = False
    # Relative to the largest magnitude of the reference array; integers and booleans are always exact.
    tolerance: float = 2e-6


PROGRAMS: dict[str, Program] = {}


def program(**needs: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Adds a function to PROGRAMS under its own name."""

    def add(function: Callable[[], Any]) -> Callable[[], Any]:
        PROGRAMS[function.__name__] = Program(function, **needs)
        return function

    return add


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> jax.Array:
    """Reproducible data made by numpy, so that both sides start from the same bits."""
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def integers(*shape: int, seed: int = 0, low: int = -128, high: int = 128, dtype: Any = np.int8) -> jax.Array:
    """Reproducible integers in [low, high)."""
    return jnp.asarray(np.random.default_rng(seed).integers(low, high, shape).astype(dtype))


def positive_definite(n: int, seed: int = 0) -> jax.Array:
    """A well-conditioned symmetric matrix."""
    a = normal(n, n, seed=seed)
    return a @ a.T + n * jnp.eye(n)


# Linear algebra


@program(tolerance=1e-5)
def linalg_cholesky() -> Any:
    return jax.jit(jnp.linalg.cholesky)(positive_definite(24))


@program(tolerance=1e-5)
def linalg_qr() -> Any:
    a = normal(17, 9)
    q, r = jnp.linalg.qr(a)
    return q @ r, jnp.abs(r), q.T @ q


@program(tolerance=1e-5)
def linalg_svd() -> Any:
    a = normal(12, 7, seed=1)
    u, s, vt = jnp.linalg.svd(a, full_matrices=False)
    return s, (u * s) @ vt


@program(tolerance=1e-5)
def linalg_eigh() -> Any:
    a = positive_definite(10, seed=2)
    w, v = jnp.linalg.eigh(a)
    return w, (v * w) @ v.T


@program(tolerance=1e-5)
def linalg_eig() -> Any:
    a = normal(6, 6, seed=3)
    w, v = jnp.linalg.eig(a)
    return jnp.sort_complex(w), (v * w) @ jnp.linalg.inv(v)


@program(tolerance=1e-5)
def linalg_lu() -> Any:
    return jax.scipy.linalg.lu(normal(11, 11, seed=4))


@program(tolerance=1e-5)
def linalg_solve() -> Any:
    a, b = positive_definite(16, seed=5), normal(16, 3, seed=6)
    lower = jnp.linalg.cholesky(a)
    return (
        jnp.linalg.solve(a, b),
        lax.linalg.triangular_solve(lower, b, left_side=True, lower=True),
        jnp.linalg.det(a / 16),
    )


@program(tolerance=1e-4)
def linalg_batched_gradient() -> Any:
    a = jnp.stack([positive_definite(5, seed=s) for s in range(3)])
    return jax.vmap(jax.grad(lambda m: jnp.linalg.slogdet(m)[1]))(a)


@program(x64=True, tolerance=1e-12)
def linalg_float64() -> Any:
    a = positive_definite(8).astype(jnp.float64)
    return jnp.linalg.inv(a), jnp.linalg.eigvalsh(a), jax.scipy.linalg.expm(a / 32)


# Transforms of signals, sorting, random numbers


@program(tolerance=1e-5)
def fft() -> Any:
    x = normal(6, 30)
    return jnp.fft.fft(x), jnp.fft.irfft(jnp.fft.rfft(x), n=30), jnp.fft.fft2(x)


@program()
def sort() -> Any:
    x = normal(5, 33)
    keys = integers(64, high=4, low=0, dtype=np.int32)
    return (
        jnp.sort(x, axis=0),
        jnp.argsort(x, axis=1),
        lax.sort((keys, jnp.arange(64)), num_keys=1, is_stable=True),
        jnp.sort(jnp.array([1.0, jnp.nan, -0.0, 0.0, -jnp.inf])),
    )


@program()
def top_k_and_search() -> Any:
    x = normal(4, 50, seed=7)
    return lax.top_k(x, 5), jnp.searchsorted(jnp.sort(x[0]), x[1]), jnp.argmax(x, 1), jnp.median(x)


@program()
def random() -> Any:
    key = jax.random.key(42)
    a, b, c, d = jax.random.split(key, 4)
    return (
        jax.random.uniform(a, (31,)),
        jax.random.randint(b, (17,), -1000, 1000),
        jax.random.permutation(c, 23),
        jax.random.bits(d, (9,), jnp.uint32),
        jax.random.categorical(a, jnp.zeros((5, 8))),
    )


@program(tolerance=1e-5)
def random_distributions() -> Any:
    keys = jax.random.split(jax.random.key(7), 3)
    return (
        jax.random.normal(keys[0], (40,)),
        jax.random.gamma(keys[1], 2.5, (10,)),
        jax.random.truncated_normal(keys[2], -1, 1, (40,)),
    )


# Control flow


@program(tolerance=1e-5)
def scan() -> Any:
    w = normal(8, 8) / 4

    def step(state: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        state = jnp.tanh(w @ state + x)
        return state, state.sum()

    return jax.jit(lambda xs: lax.scan(step, jnp.zeros(8), xs))(normal(20, 8, seed=8))


@program()
def while_loop() -> Any:
    def collatz(n: jax.Array) -> jax.Array:
        def step(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            value, count = state
            return jnp.where(value % 2 == 0, value // 2, 3 * value + 1), count + 1

        return lax.while_loop(lambda state: state[0] != 1, step, (n, 0))[1]

    return jax.jit(jax.vmap(collatz))(jnp.arange(1, 40))


@program()
def cond_and_switch() -> Any:
    branches = [lambda x: x + 1, lambda x: x * 2, lambda x: -x]
    f = jax.jit(lambda i, x: lax.switch(i, branches, lax.cond(i > 1, jnp.cumsum, jnp.flip, x)))
    return [f(i, jnp.arange(5)) for i in range(-1, 4)]


@program(tolerance=1e-5)
def fori_loop_with_matmul() -> Any:
    a = normal(16, 16) / 8
    return jax.jit(lambda x: lax.fori_loop(0, 10, lambda _, s: a @ s + x, x))(normal(16, 16, seed=9))


@program()
def fori_loop_int8_matmul() -> Any:
    w = integers(24, 24, seed=1)

    def step(_: Any, x: jax.Array) -> jax.Array:
        wide = lax.dot(x, w, preferred_element_type=jnp.int32)
        return jnp.clip(lax.shift_right_arithmetic(wide, 8), -128, 127).astype(jnp.int8)

    return jax.jit(lambda x: lax.fori_loop(0, 5, step, x))(integers(40, 24))


@program()
def associative_scan() -> Any:
    x = integers(3, 37, dtype=np.int32)
    return lax.associative_scan(jnp.add, x, axis=1), lax.cummax(x, 1), jnp.cumprod(x[:, :6], axis=1)


# Differentiation and batching


def network(weights: list[jax.Array], x: jax.Array) -> jax.Array:
    """A small multi-layer perceptron."""
    for w in weights[:-1]:
        x = jax.nn.gelu(x @ w)
    return x @ weights[-1]


def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
    """A scalar to differentiate."""
    return jnp.mean(jnp.square(network(weights, x) - 1))


WEIGHTS = [(12, 20), (20, 20), (20, 3)]


@program(tolerance=1e-5)
def grad_of_network() -> Any:
    weights = [normal(*shape, seed=i) / 4 for i, shape in enumerate(WEIGHTS)]
    return jax.jit(jax.value_and_grad(loss))(weights, normal(9, 12, seed=20))


@program(tolerance=1e-5)
def training_loop() -> Any:
    weights = [normal(*shape, seed=i) / 4 for i, shape in enumerate(WEIGHTS)]
    x = normal(32, 12, seed=21)

    @functools.partial(jax.jit, donate_argnums=0)
    def step(weights: list[jax.Array]) -> list[jax.Array]:
        gradients = jax.grad(loss)(weights, x)
        return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)]

    for _ in range(10):
        weights = step(weights)
    return weights


@program(tolerance=1e-5)
def derivatives() -> Any:
    def f(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(x) * x[::-1] ** 2)

    x = normal(6, seed=10)
    return (
        jax.hessian(f)(x),
        jax.jacfwd(lambda v: jnp.tanh(jnp.outer(v, v)))(x),
        jax.jvp(f, (x,), (jnp.ones(6),)),
        jax.vjp(jnp.cumsum, x)[1](x),
    )


@program(tolerance=1e-5)
def vmap_of_vmap() -> Any:
    a, b = normal(3, 4, 5, seed=11), normal(4, 5, 6, seed=12)
    f = jax.vmap(jax.vmap(jnp.dot, in_axes=(0, None)), in_axes=(0, None))
    return f(a, b[0]), jax.vmap(jnp.matmul, in_axes=(1, 0))(a, b)


@program(tolerance=1e-5)
def custom_vjp_and_remat() -> Any:
    @jax.custom_vjp
    def clipped(x: jax.Array) -> jax.Array:
        return x * x

    clipped.defvjp(lambda x: (x * x, x), lambda x, g: (jnp.clip(2 * x * g, -1, 1),))
    rematerialised = jax.checkpoint(lambda x: jnp.sin(jnp.sin(clipped(x))))
    return jax.grad(lambda x: rematerialised(x).sum())(normal(19))


# Data movement


@program()
def scatter_and_gather() -> Any:
    x = integers(8, 9, dtype=np.int32)
    rows = jnp.array([7, 0, 0, 3])
    return (
        x.at[rows].add(1),
        x.at[:, 2:5].set(0),
        x.at[rows, rows].max(100),
        x[rows[:, None], jnp.array([1, 8])],
        jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
        x.at[jnp.array([100])].get(mode="fill", fill_value=-7),
    )


@program()
def segment_sum() -> Any:
    ids = jnp.array([0, 2, 2, 1, 0, 5, 5, 5])
    return jax.ops.segment_sum(jnp.arange(8), ids, num_segments=6), jnp.bincount(ids, length=6)


@program()
def shapes() -> Any:
    x = integers(2, 3, 4, dtype=np.int16)
    return (
        jnp.transpose(x, (2, 0, 1)),
        jnp.pad(x, ((0, 1), (1, 0), (2, 2)), constant_values=9),
        jnp.roll(x, 3, axis=2),
        lax.rev(x, (0, 2)),
        jnp.concatenate([x, x], 1)[:, ::2],
        lax.dynamic_update_slice(x, x[:1, :1] + 1, (1, 2, 0)),
        jnp.broadcast_to(x[:, :1], (2, 5, 4)),
        x.reshape(4, -1),
    )


@program()
def empty_and_scalar() -> Any:
    empty = jnp.zeros((0, 5), jnp.float32)
    return empty @ jnp.ones((5, 3)), jnp.ones((4, 0)) @ jnp.ones((0, 2)), empty.sum(), jnp.float32(2) * 3


# Contractions


@program(tolerance=1e-5)
def einsum() -> Any:
    a, b = normal(2, 3, 4, 5, seed=13), normal(2, 3, 6, 5, seed=14)
    return (
        jnp.einsum("bhqd,bhkd->bhqk", a, b),
        jnp.einsum("bhqd,bhkd->bqh", a, b),
        jnp.einsum("iijk->ijk", a[:, :2]),
    )


@program(tolerance=1e-5)
def convolution() -> Any:
    x, w = normal(2, 3, 14, 15, seed=15), normal(4, 3, 3, 3, seed=16)
    plain = lax.conv(x, w, (1, 1), "SAME")
    dilated = lax.conv_general_dilated(x, w, (2, 2), [(2, 1), (0, 3)], rhs_dilation=(2, 1))
    depthwise = lax.conv_general_dilated(x, normal(6, 1, 3, 3), (1, 1), "VALID", feature_group_count=3)
    return plain, dilated, depthwise, jax.grad(lambda k: lax.conv(x, k, (1, 1), "VALID").sum())(w)


@program(tolerance=1e-5)
def pooling() -> Any:
    x = normal(1, 10, 10, 2)
    window, strides = (1, 3, 3, 1), (1, 2, 2, 1)
    return (
        lax.reduce_window(x, -jnp.inf, lax.max, window, strides, "SAME"),
        lax.reduce_window(x, 0.0, lax.add, window, strides, "VALID"),
        jax.grad(lambda v: lax.reduce_window(v, -jnp.inf, lax.max, window, strides, "VALID").sum())(x),
    )


@program()
def int8_matmul() -> Any:
    a, b = integers(33, 47), integers(47, 18, seed=2)
    wide = lax.dot(a, b, preferred_element_type=jnp.int32)
    scaled = jnp.round(wide.astype(jnp.float32) * 0.00341)
    return wide, jnp.clip(scaled, -128, 127).astype(jnp.int8), jnp.maximum(wide, 0)


@program()
def int8_matmul_transposed() -> Any:
    a, b = integers(40, 16, seed=3), integers(24, 16, seed=4)
    return lax.dot_general(a, b, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32)


@program(tolerance=1e-2)
def bfloat16_attention() -> Any:
    q, k, v = (normal(32, 16, seed=s).astype(jnp.bfloat16) / 2 for s in range(3))
    scores = jax.nn.softmax((q @ k.T).astype(jnp.float32), axis=-1).astype(jnp.bfloat16)
    return scores @ v


@program(tolerance=2e-2)
def half_precision() -> Any:
    x = normal(9, 9).astype(jnp.float16)
    y = normal(9, 9).astype(jnp.bfloat16)
    return x @ x, jnp.exp(y), (x.astype(jnp.float32) + y.astype(jnp.float32)).sum()


@program(tolerance=1e-5)
def layer_norm_and_softmax() -> Any:
    x = normal(7, 65, seed=17)
    mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5), jax.nn.softmax(x), jax.nn.logsumexp(x, axis=0)


# Element types


@program()
def narrow_integers() -> Any:
    x = integers(20, low=-8, high=8).astype(jnp.int4)
    y = integers(20, low=0, high=16, seed=1).astype(jnp.uint4)
    return (x + x).astype(jnp.int8), (y * y).astype(jnp.uint8), x.astype(jnp.float32), x.reshape(4, 5).T


@program()
def integer_arithmetic() -> Any:
    x, y = (integers(64, low=-(2**31), high=2**31, dtype=np.int32, seed=s) for s in (5, 6))
    u = x.astype(jnp.uint32)
    return (
        x + y,
        x * y,
        x // jnp.where(y == 0, 1, y),
        lax.rem(x, y | 1),
        x >> 3,
        u >> 3,
        lax.clz(u),
        lax.population_count(u),
        jnp.bitwise_xor(x, y),
        jnp.iinfo(jnp.int32).min // jnp.array([-1, 1]),
        x.astype(jnp.int8),
    )


@program(x64=True, tolerance=1e-12)
def sixty_four_bits() -> Any:
    x = normal(13, 13, dtype=np.float64)
    big = jnp.array([2**40, -(2**50), 7], jnp.int64)
    return (
        x @ x.T,
        jnp.exp(x),
        big * big,
        big // 3,
        jnp.sum(x, dtype=jnp.float64),
        jax.random.bits(jax.random.key(1), (4,), jnp.uint64),
    )


@program(tolerance=1e-5)
def complex_numbers() -> Any:
    z = normal(6, 6) + 1j * normal(6, 6, seed=1)
    return (
        z @ z.conj().T,
        jnp.abs(z),
        jnp.exp(1j * z.real),
        jnp.angle(z),
        jax.grad(lambda v: (v * v.conj()).real.sum())(z),
    )


@program()
def special_values() -> Any:
    x = jnp.array([jnp.nan, jnp.inf, -jnp.inf, -0.0, 0.0, 1e-45, 3e38, -1.5, 2.5, 0.5])
    return (
        jnp.maximum(x, 1),
        jnp.minimum(x, -1),
        jnp.sign(x),
        jnp.round(x),
        x.astype(jnp.bfloat16),
        jnp.isnan(x) | jnp.isinf(x),
        jnp.nan_to_num(x),
        lax.bitcast_convert_type(x, jnp.int32),
        jnp.clip(x, -128, 127).astype(jnp.int8),
    )


# Interfaces to the host


@program()
def donation() -> Any:
    f = jax.jit(lambda x, y: (x + 1, y * x), donate_argnums=0)
    x = jnp.arange(100, dtype=jnp.float32)
    kept = x + 0
    results = f(x, jnp.ones(100))
    return *results, kept, jnp.array(x.is_deleted())


@program()
def dlpack() -> Any:
    x = normal(4, 5)
    y = jnp.from_dlpack(x)
    z = np.from_dlpack(x)
    back = jnp.from_dlpack(np.arange(12, dtype=np.int32).reshape(3, 4))
    return y + x, jnp.asarray(z), back * 2


@program()
def debug_print() -> Any:
    text = io.StringIO()
    with redirect_stdout(text):
        jax.jit(lambda x: jax.debug.print("sum {s} of {x}", s=x.sum(), x=x, ordered=True))(jnp.arange(4))
        jax.effects_barrier()
    return np.frombuffer(text.getvalue().encode(), np.uint8)


@program()
def debug_callback() -> Any:
    seen: list[float] = []
    jax.jit(lambda x: jax.debug.callback(lambda v: seen.append(float(v)), x.sum()))(jnp.arange(5.0))
    jax.effects_barrier()
    return np.array(seen)


@program()
def pure_callback() -> Any:
    def host(x: Any, y: Any) -> tuple[Any, Any]:
        return np.asarray(x)[::-1] * 2, np.asarray(y).sum(keepdims=True)

    shapes = (jax.ShapeDtypeStruct((6,), jnp.float32), jax.ShapeDtypeStruct((1,), jnp.int32))
    f = jax.jit(lambda x, y: jax.pure_callback(host, shapes, x + 1, y))
    batched = jax.vmap(
        lambda x: jax.pure_callback(
            lambda v: np.asarray(v) ** 2, jax.ShapeDtypeStruct((), jnp.float32), x, vmap_method="expand_dims"
        )
    )
    return f(jnp.arange(6.0), jnp.arange(4)), f(jnp.ones(6), jnp.arange(4)), batched(jnp.arange(5.0))


@program()
def pure_callback_narrow_types() -> Any:
    results = []
    for name in ("int4", "uint4", "int2", "bool", "bfloat16", "float16", "complex64", "float8_e4m3fn"):
        dtype = jnp.dtype(name)
        x = np.array([1, 0, 1, 1, 0, 0, 1]).astype(dtype)
        f = jax.jit(lambda v: jax.pure_callback(np.flip, jax.ShapeDtypeStruct(v.shape, v.dtype), v))
        results.append(np.asarray(f(x)).astype(np.float32 if name != "complex64" else np.complex64))
    return results


@program()
def io_callback_ordered() -> Any:
    seen: list[int] = []

    def step(i: jax.Array, total: jax.Array) -> jax.Array:
        jax.experimental.io_callback(lambda v: seen.append(int(v)), None, i * i, ordered=True)
        return total + i

    total = jax.jit(lambda n: lax.fori_loop(0, n, step, 0))(9)
    jax.effects_barrier()
    return total, np.array(seen)


@program()
def buffer_callback() -> Any:
    from jax.experimental.buffer_callback import buffer_callback as make

    def host(context: Any, out: Any, x: Any) -> None:
        np.asarray(out)[...] = np.asarray(x) + 1

    return jax.jit(make(host, jax.ShapeDtypeStruct((3, 2), jnp.int32)))(
        jnp.arange(6, dtype=jnp.int32).reshape(3, 2)
    )


@program()
def callback_error() -> Any:
    def fails(x: Any) -> Any:
        raise ValueError("deliberate")

    f = jax.jit(lambda x: jax.pure_callback(fails, jax.ShapeDtypeStruct((), jnp.float32), x))
    try:
        f(1.0).block_until_ready()
    except Exception as error:
        return np.array("deliberate" in str(error))
    return np.array(False)


@program()
def checkify() -> Any:
    from jax.experimental import checkify as check

    def f(x: jax.Array, i: jax.Array) -> jax.Array:
        check.check(i < 5, "index {} too large", i)
        return x[i]

    checked = jax.jit(check.checkify(f, errors=check.user_checks | check.index_checks))
    errors = [checked(jnp.arange(10), i)[0].get() or "" for i in (2, 7)]
    return [np.frombuffer(error.split("(")[0].encode(), np.uint8) for error in errors]


@program(tolerance=1e-5)
def export() -> Any:
    from jax import export as jax_export

    f = jax.jit(lambda x: jnp.tanh(x @ x.T).sum(0))
    x = normal(5, 8)
    blob = jax_export.export(f)(jax.ShapeDtypeStruct(x.shape, x.dtype)).serialize()
    return jax_export.deserialize(blob).call(x)


@program(tolerance=1e-5)
def compiled_ahead_of_time() -> Any:
    lowered = jax.jit(lambda x: (x @ x, x.sum())).lower(jax.ShapeDtypeStruct((8, 8), jnp.float32))
    return [compiled(normal(8, 8)) for compiled in (lowered.compile(), lowered.compile())]


@program()
def ffi_lapack_in_loop() -> Any:
    a = positive_definite(6)
    return jax.jit(lambda m: lax.fori_loop(0, 3, lambda _, s: jnp.linalg.cholesky(s @ s.T + m) / 8, m))(a)


@program(tolerance=1e-5)
def sparse() -> Any:
    from jax.experimental import sparse as jax_sparse

    dense = jnp.where(normal(8, 10) > 0.5, normal(8, 10), 0)
    return jax_sparse.BCOO.fromdense(dense) @ normal(10, 4, seed=1)


# Several devices


@program(devices=4, tolerance=1e-5)
def pmap() -> Any:
    return jax.pmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(normal(4, 7))


@program(devices=4, tolerance=1e-5)
def shard_map_collectives() -> Any:
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("x")

    def body(block: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        return (
            block + lax.psum(block.sum(), "x"),
            lax.ppermute(block, "x", [(i, (i + 1) % 4) for i in range(4)]),
            lax.all_gather(block, "x", tiled=True)[:2],
        )

    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=(spec, spec, spec)))(normal(8, 3))


@program(devices=4, tolerance=1e-5)
def sharded_matmul() -> Any:
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("a", "b"))
    x, y = (jax.device_put(normal(16, 16, seed=s), sharding) for s in (1, 2))
    return jax.jit(lambda p, q: jax.nn.relu(p @ q))(x, y), jnp.array(len(x.devices()))


@program(devices=4)
def int8_matmul_on_each_device() -> Any:
    results = []
    for device in jax.devices():
        a, b = jax.device_put((integers(16, 16), integers(16, 16, seed=1)), device)
        results.append(np.asarray(lax.dot(a, b, preferred_element_type=jnp.int32)))
    return results
