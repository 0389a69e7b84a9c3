"""JAX programs whose compiled modules stand beside this file; `dump.py` writes them."""

import jax
import jax.numpy as jnp
import numpy as np

zeros = jnp.zeros


def quantized_layer(x, w, b, scale):
    product = jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    active = jnp.maximum(product + b, 0)
    return jnp.clip(jnp.round(active.astype(jnp.float32) * scale), -128, 127).astype(jnp.int8)


def mlp(x, w1, b1, w2, b2):
    hidden = quantized_layer(x, w1, b1, 0.01)
    return jax.lax.fori_loop(0, 3, lambda _, h: quantized_layer(h, w2, b2, 0.02), hidden)


def attention(q, k, v):
    e = jnp.exp(q @ k.T)
    return (e / jnp.sum(e, 1, keepdims=True)) @ v


def softmax(q, k, v):
    return jax.nn.softmax(q @ k.T) @ v


def scan(w, xs):
    return jax.lax.scan(lambda h, x: (jnp.tanh(h @ w + x), h.sum()), zeros((4, 16)), xs)


def branches(p, a, b):
    return jax.lax.cond(p, lambda a, b: a @ b, lambda a, b: (a + 1) @ b.T, a, b)


def constants(a):
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    return a @ table, np.array([1, 2, 3], np.int8) + a.astype(jnp.int8)[:, :3]


bf16 = zeros((64, 64), jnp.bfloat16)
PROGRAMS = {
    "mlp": (
        mlp,
        zeros((64, 128), jnp.int8),
        zeros((128, 96), jnp.int8),
        zeros((96,), jnp.int32),
        zeros((96, 96), jnp.int8),
        zeros((96,), jnp.int32),
    ),
    "attention": (attention, bf16, bf16, bf16),
    "softmax": (softmax, bf16, bf16, bf16),
    "batched": (jax.vmap(lambda a, b: jnp.tanh(a @ b.T)), zeros((4, 8, 16)), zeros((4, 5, 16))),
    "grad": (jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w) ** 2)), zeros((48, 16)), zeros((32, 48))),
    "scan": (scan, zeros((16, 16)), zeros((5, 4, 16))),
    "cond": (branches, True, zeros((16, 16)), zeros((16, 16))),
    "convolution": (
        lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME"),
        zeros((2, 3, 16, 16)),
        zeros((8, 3, 3, 3)),
    ),
    "linalg": (lambda a: (jnp.linalg.cholesky(a @ a.T), jnp.fft.fft(a), jnp.sort(a, 0)), zeros((8, 8))),
    "scatter": (lambda a, i, u: (a.at[i].add(u), a[i]), zeros((16, 4)), jnp.arange(3), zeros((3, 4))),
    "constants": (constants, zeros((2, 4))),
}
