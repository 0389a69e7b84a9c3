"""A little of everything that a model is made of: an int8 block, attention in bfloat16, and some numerics.

An ordinary JAX script. It runs on whatever platform JAX is told to use.
"""

import jax
import jax.numpy as jnp
from jax import lax

REPEATS = 4
INPUT_SCALE, LOOP_SCALE = 0.0011, 0.0017


def requantize(wide, scale):
    """Back from 32 bits to 8: scale, round to nearest even, saturate."""
    return jnp.clip(jnp.round(wide.astype(jnp.float32) * scale), -128, 127).astype(jnp.int8)


def quantized_matmul(x, weights, bias):
    """int8 times int8 in 32 bits, plus a bias per column."""
    return lax.dot(x, weights, preferred_element_type=jnp.int32) + bias


@jax.jit
def mlp_input(x, weights, bias):
    """One quantized layer with relu."""
    return requantize(jax.nn.relu(quantized_matmul(x, weights, bias)), INPUT_SCALE)


@jax.jit
def mlp_loop(x, weights, bias):
    """A quantized layer, applied again and again."""

    def layer(_, h):
        return requantize(quantized_matmul(h, weights, bias), LOOP_SCALE)

    return lax.fori_loop(0, REPEATS, layer, x)


@jax.jit
def attention(q, k, v):
    """Softmax attention, spelled out."""
    e = jnp.exp(q @ k.T)
    return (e / jnp.sum(e, 1, keepdims=True)) @ v


@jax.jit
def softmax_attention(q, k, v):
    """The same with the library's softmax, which subtracts each row's maximum first."""
    return jax.nn.softmax(q @ k.T, axis=-1) @ v


def main():
    """Everything above on reproducible data; a dictionary of the results."""
    keys = iter(jax.random.split(jax.random.key(0), 8))

    def integers(shape, bound, dtype):
        return jax.random.randint(next(keys), shape, -bound, bound, jnp.int32).astype(dtype)

    x = integers((50, 72), 128, jnp.int8)
    w1, b1 = integers((72, 96), 128, jnp.int8), integers((96,), 20000, jnp.int32)
    w2, b2 = integers((96, 96), 128, jnp.int8), integers((96,), 20000, jnp.int32)
    q, k, v = (jax.random.normal(next(keys), (64, 64)).astype(jnp.bfloat16) / 2 for _ in range(3))

    hidden = mlp_input(x, w1, b1)
    spd = (hidden[:32].astype(jnp.float32) / 64) @ (hidden[:32].astype(jnp.float32) / 64).T + jnp.eye(32)
    return {
        "mlp_input": hidden,
        "mlp_loop": mlp_loop(hidden, w2, b2),
        "attention": attention(q, k, v),
        "softmax_attention": softmax_attention(q, k, v),
        "sort": jnp.sort(hidden, axis=0),
        "cholesky": jnp.linalg.cholesky(spd),
        "fft": jnp.fft.fft(spd),
    }


if __name__ == "__main__":
    print(f"running on {jax.devices()}")
    for name, value in main().items():
        checksum = jnp.sum(jnp.abs(value.astype(jnp.complex64)))
        print(f"{name:18} {value.dtype!s:10} {value.shape!s:10} sum of magnitudes {checksum:.6g}")
