"""Inference in int8: integer products summed in int32, scaled back by powers of two or by float scales."""

from __future__ import annotations

from itertools import pairwise

import jax
import jax.numpy as jnp
from jax import lax

from .data import integers

Params = dict[str, jax.Array]


def params(name: str, sizes: list[int]) -> Params:
    out: Params = {}
    for k, (m, n) in enumerate(pairwise(sizes)):
        out[f"w{k}"] = integers(f"{name}/w{k}", m, n)
        out[f"b{k}"] = integers(f"{name}/b{k}", n, low=-1000, high=1000, dtype="int32")
    return out


def product(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.dot(x, w, preferred_element_type=jnp.int32)


def shifted_layers(p: Params, x: jax.Array, shift: int = 7) -> jax.Array:
    """Every layer: product, bias, ReLU, arithmetic shift, saturation to int8; the last one in int32."""
    depth = len(p) // 2
    for k in range(depth):
        total = product(x, p[f"w{k}"]) + p[f"b{k}"]
        if k + 1 == depth:
            return total
        x = jnp.clip(jnp.maximum(total, 0) >> shift, -128, 127).astype(jnp.int8)
    return x


def scaled_layers(p: Params, x: jax.Array, scale: float = 1 / 160) -> jax.Array:
    """The same with float scales, rounded to the nearest even number."""
    depth = len(p) // 2
    for k in range(depth):
        total = product(x, p[f"w{k}"]) + p[f"b{k}"]
        if k + 1 == depth:
            return total
        x = jnp.clip(jnp.round(total.astype(jnp.float32) * scale), -128, 127).astype(jnp.int8)
    return x


def convolution(x: jax.Array, w: jax.Array, stride: int = 1) -> jax.Array:
    return lax.conv_general_dilated(
        x,
        w,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        preferred_element_type=jnp.int32,
    )


def convolutions(p: Params, x: jax.Array, shift: int = 8) -> jax.Array:
    y = jnp.clip(jnp.maximum(convolution(x, p["conv1"]), 0) >> shift, -128, 127).astype(jnp.int8)
    return convolution(y, p["conv2"], stride=2)


def convolution_params(name: str, channels: int) -> Params:
    return {
        "conv1": integers(f"{name}/conv1", 3, 3, channels, 2 * channels),
        "conv2": integers(f"{name}/conv2", 3, 3, 2 * channels, channels),
    }
