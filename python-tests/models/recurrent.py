"""LSTM and GRU cells, unrolled by a scan."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .data import weights

Params = dict[str, jax.Array]


def lstm_params(name: str, inputs: int, units: int, dtype: Any = jnp.float32) -> Params:
    shapes = {"wx": (inputs, 4 * units), "wh": (units, 4 * units), "b": (4 * units,), "out": (units, inputs)}
    return {key: weights(f"{name}/{key}", *shape, dtype=dtype) for key, shape in shapes.items()}


def lstm(p: Params, sequence: jax.Array) -> jax.Array:
    """``sequence`` is [time, batch, inputs]; the projected last state."""
    zeros = jnp.zeros((sequence.shape[1], p["wh"].shape[0]), sequence.dtype)

    def cell(state: tuple[jax.Array, jax.Array], x: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
        h, c = state
        i, f, g, o = jnp.split(x @ p["wx"] + h @ p["wh"] + p["b"], 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    (h, _), _ = lax.scan(cell, (zeros, zeros), sequence)
    return h @ p["out"]


def gru_params(name: str, inputs: int, units: int, dtype: Any = jnp.float32) -> Params:
    shapes = {
        "wx": (inputs, 2 * units),
        "wh": (units, 2 * units),
        "cx": (inputs, units),
        "ch": (units, units),
    }
    return {key: weights(f"{name}/{key}", *shape, dtype=dtype) for key, shape in shapes.items()}


def gru(p: Params, sequence: jax.Array) -> jax.Array:
    h = jnp.zeros((sequence.shape[1], p["wh"].shape[0]), sequence.dtype)

    def cell(h: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
        z, r = jnp.split(jax.nn.sigmoid(x @ p["wx"] + h @ p["wh"]), 2, -1)
        candidate = jnp.tanh(x @ p["cx"] + (r * h) @ p["ch"])
        return (1 - z) * h + z * candidate, None

    return lax.scan(cell, h, sequence)[0]
