"""A multilayer perceptron: dense layers with bias and ReLU."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from .data import weights

Layers = list[tuple[jax.Array, jax.Array]]


def layers(name: str, sizes: list[int], dtype: Any = jnp.float32) -> Layers:
    return [
        (weights(f"{name}/w{k}", m, n, dtype=dtype), weights(f"{name}/b{k}", n, dtype=dtype))
        for k, (m, n) in enumerate(pairwise(sizes))
    ]


def mlp(params: Layers, x: jax.Array) -> jax.Array:
    *hidden, (w, b) = params
    for wh, bh in hidden:
        x = jax.nn.relu(x @ wh + bh)
    return x @ w + b
