"""JAX programs whose regions are offloaded in test_offload.py. Each is a function and its arguments; what a
program is there for stands in its name."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

rng = np.random.default_rng(7)


def floats(*shape, dtype=jnp.float32):
    return rng.standard_normal(shape).astype(dtype)


def ints(*shape, dtype=jnp.int8, low=-100, high=100):
    return rng.integers(low, high, shape).astype(dtype)


def product(a, b, dims, dtype):
    return lax.dot_general(a, b, (dims, ((), ())), preferred_element_type=dtype)


def requantize(a, scale):
    return jnp.clip(jnp.round(a.astype(jnp.float32) * scale), -128, 127).astype(jnp.int8)


def layer(x, w, b, scale=0.01):
    return requantize(jnp.maximum(product(x, w, ((1,), (0,)), jnp.int32) + b, 0), scale)


def mlp(x, w1, b1, w2, b2):
    return lax.fori_loop(0, 3, lambda _, h: layer(h, w2, b2, 0.02), layer(x, w1, b1))


def attention(q, k, v):
    e = jnp.exp(q @ k.T)
    return (e / jnp.sum(e, 1, keepdims=True)) @ v


def softmax(q, k, v):
    return jax.nn.softmax(q @ k.T) @ v


def causal(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    mask = lax.broadcasted_iota(jnp.int32, scores.shape, 2) >= lax.broadcasted_iota(
        jnp.int32, scores.shape, 3
    )
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(mask, scores, -1e30)), v)


def loop_overwrites_what_it_reads(h, w):
    return lax.fori_loop(0, 4, lambda _, h: requantize(product(h, w, ((1,), (0,)), jnp.int32), 0.003), h)


def loop_swaps(a, b, w):
    return lax.fori_loop(0, 5, lambda _, s: (jnp.tanh(s[1] @ w), s[0] + 1), (a, b))


def loop_reads_old_state_late(a, b, w):
    def step(_, s):
        a, b = s
        new_a = jnp.tanh(a @ w)
        return new_a, b + (a * 2) @ w + jnp.sort(new_a, 0)

    return lax.fori_loop(0, 4, step, (a, b))


def loop_of_loops(x, w):
    def inner(_, h):
        return jnp.tanh(h @ w)

    return lax.fori_loop(0, 3, lambda i, h: lax.fori_loop(0, i + 1, inner, h) + h, x)


def while_on_a_dot(x, w):
    return lax.while_loop(lambda s: jnp.sum(s[0] @ w) < 1e3, lambda s: (s[0] * 1.5 + 1, s[1] + 1), (x, 0))


def scan(w, xs):
    return lax.scan(lambda h, x: (jnp.tanh(h @ w + x), h.sum()), jnp.zeros((4, 16)), xs)


def cached_decoding(cache, xs, w):
    def step(carry, x):
        cache, i = carry
        cache = lax.dynamic_update_slice(cache, (x @ w)[None], (i, 0))
        scores = jax.nn.softmax(cache @ x)
        return (cache, i + 1), scores @ cache

    return lax.scan(step, (cache, 0), xs)


def branches(p, a, b):
    return lax.cond(p, lambda a, b: a @ b, lambda a, b: (a + 1) @ b.T, a, b)


def diamond_around_a_sort(a, b):
    d = a @ b
    return jnp.exp(-d * d) + jnp.sort(d, 1) @ b


def residual_block(x, w1, w2):
    h = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    return x + jax.nn.gelu(h @ w1) @ w2


def many_results(a, b):
    d = a @ b
    return d, d.T, d + 1, jnp.sum(d, 0), (d > 0), d.reshape(-1)[::3], d


def loss(params, x):
    h = x
    for w, b in params:
        h = jnp.tanh(h @ w + b)
    return jnp.mean(h**2)


def train(params, x):
    def step(params, _):
        value, grads = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return lax.scan(step, params, None, length=3)


params = [(floats(8, 12), floats(12)), (floats(12, 8), floats(8))]
bf16 = functools.partial(floats, dtype=jnp.bfloat16)


def convolution(x, w, *, strides=1, dilation=1, spread=1, padding="SAME", groups=1, preferred=None):
    return lax.conv_general_dilated(
        x,
        w,
        (strides, strides),
        padding,
        lhs_dilation=(spread, spread),
        rhs_dilation=(dilation, dilation),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
        preferred_element_type=preferred,
    )


PROGRAMS = {
    "mlp": (
        mlp,
        ints(64, 128),
        ints(128, 96),
        ints(96, dtype=jnp.int32),
        ints(96, 96),
        ints(96, dtype=jnp.int32),
    ),
    "attention_bf16": (attention, bf16(64, 64) / 8, bf16(64, 64) / 8, bf16(64, 64)),
    "attention_f32": (attention, floats(24, 16) / 4, floats(24, 16) / 4, floats(24, 16)),
    "softmax_bf16": (softmax, bf16(32, 16), bf16(32, 16), bf16(32, 16)),
    "softmax_f32": (softmax, floats(33, 17), floats(19, 17), floats(19, 5)),
    "softmax_f16": (
        softmax,
        floats(16, 8, dtype=jnp.float16),
        floats(16, 8, dtype=jnp.float16),
        floats(16, 8),
    ),
    "causal": (causal, floats(2, 3, 9, 4), floats(2, 3, 9, 4), floats(2, 3, 9, 4)),
    "loop_overwrites_what_it_reads": (loop_overwrites_what_it_reads, ints(32, 48), ints(48, 48)),
    "loop_swaps": (loop_swaps, floats(16, 16), floats(16, 16), floats(16, 16)),
    "loop_reads_old_state_late": (loop_reads_old_state_late, floats(8, 8), floats(8, 8), floats(8, 8)),
    "loop_of_loops": (loop_of_loops, floats(8, 12), floats(12, 12)),
    "while_on_a_dot": (while_on_a_dot, floats(24, 26) ** 2 / 100, floats(26, 26) ** 2),
    "small_while_on_a_dot": (while_on_a_dot, floats(4, 6) ** 2, floats(6, 6) ** 2),
    "scan": (scan, floats(16, 16), floats(5, 4, 16)),
    "cached_decoding": (cached_decoding, np.zeros((6, 8), np.float32), floats(6, 8), floats(8, 8)),
    "branch_taken": (branches, True, floats(16, 16), floats(16, 16)),
    "branch_not_taken": (branches, False, floats(16, 16), floats(16, 16)),
    "mapped": (lambda xs, w: lax.map(lambda x: jnp.tanh(x @ w), xs), floats(3, 4, 8), floats(8, 8)),
    "diamond_around_a_sort": (diamond_around_a_sort, floats(12, 12), floats(12, 12)),
    "residual_block": (residual_block, floats(16, 24), floats(24, 32), floats(32, 24)),
    "many_results": (many_results, floats(7, 5), floats(5, 9)),
    "same_operand_twice": (lambda x: x @ x.T + x.T @ x, floats(16, 16)),
    "chain": (lambda a, b, c, d: ((a @ b) @ c) @ d, floats(5, 7), floats(7, 3), floats(3, 11), floats(11, 2)),
    "transposed_both": (lambda a, b: (a.T @ b.T).T, floats(7, 5), floats(9, 7)),
    "batched": (jax.vmap(lambda a, b: jnp.tanh(a @ b.T)), floats(4, 8, 16), floats(4, 5, 16)),
    "batch_in_the_middle": (lambda a, b: jnp.einsum("ibj,jkb->bki", a, b), floats(4, 3, 5), floats(5, 6, 3)),
    "two_contracted": (lambda a, b: jnp.einsum("ijk,kjl->il", a, b), floats(4, 3, 5), floats(5, 3, 6)),
    "outer": (lambda a, b: jnp.einsum("i,j->ij", a, b) @ b, floats(6), floats(8)),
    "vectors": (lambda a, b: a @ b + a.sum(), floats(64), floats(64)),
    "matrix_vector": (lambda a, b: jax.nn.relu(a @ b), floats(16, 32), floats(32)),
    "empty": (lambda a, b: a @ b + 1, floats(4, 0), floats(0, 3)),
    "ones": (lambda a, b: jnp.exp(a @ b), floats(1, 1), floats(1, 1)),
    "int32": (lambda a, b: (a @ b) // 3, ints(9, 9, dtype=jnp.int32), ints(9, 9, dtype=jnp.int32)),
    "uint8": (
        lambda a, b: product(a, b, ((1,), (1,)), jnp.int32) >> 2,
        ints(6, 10, dtype=jnp.uint8, low=0, high=255),
        ints(7, 10, dtype=jnp.uint8, low=0, high=255),
    ),
    "sliced_and_padded": (
        lambda a, b: jnp.pad(a[1:5, ::2] @ b, ((1, 2), (0, 3)))[:, ::-1],
        floats(6, 12),
        floats(6, 4),
    ),
    "concatenated": (
        lambda a, b, c: jnp.concatenate([a @ b, c], 1) @ jnp.ones((7, 2)),
        floats(3, 4),
        floats(4, 2),
        floats(3, 5),
    ),
    "big_constant": (lambda a: a @ np.arange(60, dtype=np.float32).reshape(6, 10) + 3, floats(4, 6)),
    "convolution": (
        lambda x, w, m: lax.conv_general_dilated(x, w, (1, 1), "SAME")[0, 0] @ m,
        floats(1, 3, 8, 8),
        floats(4, 3, 3, 3),
        floats(8, 8),
    ),
    "strided_convolution": (
        lambda x, w, b: jnp.maximum(convolution(x, w, strides=2) + b, 0),
        floats(2, 9, 7, 3),
        floats(3, 2, 3, 5),
        floats(5),
    ),
    "dilated_convolution": (
        lambda x, w: convolution(x, w, dilation=2, padding=[[1, 2], [0, 3]]),
        floats(1, 9, 11, 4),
        floats(3, 3, 4, 6),
    ),
    "transposed_convolution": (
        lambda x, w: convolution(x, w, spread=2, padding=[[1, 1], [2, 0]]),
        floats(1, 5, 6, 4),
        floats(3, 3, 4, 6),
    ),
    "grouped_convolution": (
        lambda x, w: jnp.tanh(convolution(x, w, groups=3)),
        floats(2, 6, 5, 12),
        floats(3, 3, 4, 6),
    ),
    "depthwise_convolution": (
        lambda x, w: convolution(x, w, groups=4),
        floats(2, 6, 5, 4),
        floats(3, 3, 1, 4),
    ),
    "integer_convolutions": (
        lambda x, w, v: convolution(
            requantize(convolution(x, w, preferred=jnp.int32), 0.01), v, preferred=jnp.int32
        ),
        ints(1, 6, 7, 5),
        ints(3, 3, 5, 4),
        ints(2, 2, 4, 3),
    ),
    "convolution_gradients": (
        jax.grad(lambda w, x: jnp.sum(jnp.tanh(convolution(x, w, strides=2)) ** 2), argnums=(0, 1)),
        floats(3, 3, 3, 4),
        floats(2, 8, 7, 3),
    ),
    "convolution_along_a_line": (
        lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")),
        floats(2, 12, 5),
        floats(3, 5, 4),
    ),
    "grad": (jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w) ** 2)), floats(48, 16) / 8, floats(32, 48)),
    "hessian": (jax.hessian(lambda x, a: jnp.sum(jnp.tanh(a @ x))), floats(6), floats(5, 6)),
    "training": (train, params, floats(10, 8)),
    "gathered": (lambda t, i, w: t[i] @ w, floats(20, 8), np.array([3, 1, 4, 1, 5]), floats(8, 3)),
    "scattered": (
        lambda t, i, a, b: t.at[i].add(a @ b),
        floats(9, 4),
        np.array([3, 1, 4]),
        floats(3, 2),
        floats(2, 4),
    ),
    "sorted_loop": (
        lambda x, w: lax.fori_loop(0, 3, lambda _, h: jnp.sort(h @ w, 1), x),
        floats(6, 6),
        floats(6, 6),
    ),
}

#: Programs whose contractions XLA turns into something else before regions are looked for.
WITHOUT_CONTRACTION = {"vectors", "empty", "ones"}

#: Programs with a contraction that no device takes: a depthwise one; a loop that XLA makes one function of.
STAYS = {"depthwise_convolution", "small_while_on_a_dot"}

#: Programs whose first argument is donated: a result takes its buffer.
DONATING = {
    "update": (lambda x, w: x + jnp.tanh(x @ w), floats(16, 16), floats(16, 16)),
    "replace": (
        lambda x, w: requantize(product(x, w, ((1,), (0,)), jnp.int32), 0.01),
        ints(32, 32),
        ints(32, 32),
    ),
    "two": (lambda x, w: (jnp.sort(x @ w, 0), (x * 2) @ w), floats(16, 16), floats(16, 16)),
}
