"""Weights and inputs by seed, the same bits on every platform."""

from __future__ import annotations

import math
import zlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def generator(name: str) -> np.random.Generator:
    """A generator that depends on a tensor's name alone."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def weights(name: str, *shape: int, dtype: Any = jnp.float32) -> jax.Array:
    """Normal weights whose products keep their operand's size; the last dimension is the output."""
    fan_in = math.prod(shape[:-1]) if len(shape) > 1 else 4
    values = generator(name).standard_normal(shape) / math.sqrt(fan_in)
    return jnp.asarray(values.astype(np.float32)).astype(dtype)


def activations(name: str, *shape: int, dtype: Any = jnp.float32) -> jax.Array:
    """Standard normal inputs."""
    return jnp.asarray(generator(name).standard_normal(shape).astype(np.float32)).astype(dtype)


def integers(name: str, *shape: int, low: int = -128, high: int = 128, dtype: Any = np.int8) -> jax.Array:
    """Integers in [low, high)."""
    return jnp.asarray(generator(name).integers(low, high, shape).astype(dtype))
