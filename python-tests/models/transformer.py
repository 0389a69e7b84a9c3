"""A transformer's encoder and decoder layer: attention, layer norm or RMS norm, and a feed-forward part."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from .data import weights

Params = dict[str, jax.Array]


def layer_params(name: str, width: int, hidden: int, dtype: Any = jnp.float32, gated: bool = False) -> Params:
    shapes = {"q": (width, width), "k": (width, width), "v": (width, width), "o": (width, width)}
    shapes |= {"up": (width, hidden), "down": (hidden, width), "norm1": (width,), "norm2": (width,)}
    if gated:
        shapes |= {"gate": (width, hidden)}
    return {key: weights(f"{name}/{key}", *shape, dtype=dtype) for key, shape in shapes.items()}


def layer_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    x32 = x.astype(jnp.float32)
    centred = x32 - x32.mean(-1, keepdims=True)
    normal = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return (normal * (1 + scale.astype(jnp.float32))).astype(x.dtype)


def rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    x32 = x.astype(jnp.float32)
    normal = x32 * jax.lax.rsqrt((x32 * x32).mean(-1, keepdims=True) + 1e-6)
    return (normal * (1 + scale.astype(jnp.float32))).astype(x.dtype)


def attention(p: Params, x: jax.Array, heads: int, causal: bool) -> jax.Array:
    batch, length, width = x.shape
    split = (batch, length, heads, width // heads)
    q, k, v = ((x @ p[key]).reshape(split) for key in "qkv")
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(width // heads)
    if causal:
        visible = jnp.tril(jnp.ones((length, length), bool))
        scores = jnp.where(visible, scores, jnp.finfo(scores.dtype).min)
    probabilities = jax.nn.softmax(scores, -1)
    return jnp.einsum("bhqk,bkhd->bqhd", probabilities, v).reshape(batch, length, width) @ p["o"]


def encoder_layer(p: Params, x: jax.Array, heads: int) -> jax.Array:
    """Post-norm with GELU, as in the first encoders."""
    x = layer_norm(x + attention(p, x, heads, causal=False), p["norm1"])
    return layer_norm(x + jax.nn.gelu(x @ p["up"]) @ p["down"], p["norm2"])


def decoder_layer(p: Params, x: jax.Array, heads: int) -> jax.Array:
    """Pre-norm, causal, with a gated feed-forward part."""
    x = x + attention(p, rms_norm(x, p["norm1"]), heads, causal=True)
    y = rms_norm(x, p["norm2"])
    return x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]


def decode_step(p: Params, x: jax.Array, keys: jax.Array, values: jax.Array) -> jax.Array:
    """One token per sequence against cached keys and values, one head."""
    q = rms_norm(x, p["norm1"]) @ p["q"]
    scores = jnp.einsum("bd,btd->bt", q, keys) / math.sqrt(x.shape[-1])
    mixed = jnp.einsum("bt,btd->bd", jax.nn.softmax(scores, -1), values)
    x = x + mixed @ p["o"]
    y = rms_norm(x, p["norm2"])
    return x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]
