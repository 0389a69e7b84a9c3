"""Convolutional networks: a plain one, a residual block, and a depthwise-separable block. Images are NHWC."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .data import weights

Params = dict[str, jax.Array]


def convolve(
    x: jax.Array, w: jax.Array, stride: int = 1, groups: int = 1, dilation: int = 1, padding: str = "SAME"
) -> jax.Array:
    return lax.conv_general_dilated(
        x,
        w,
        (stride, stride),
        padding,
        rhs_dilation=(dilation, dilation),
        feature_group_count=groups,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def pool(x: jax.Array) -> jax.Array:
    """Mean of 2x2 windows."""
    n, h, w, c = x.shape
    return x[:, : h // 2 * 2, : w // 2 * 2].reshape(n, h // 2, 2, w // 2, 2, c).mean((2, 4))


def cnn_params(name: str, channels: int, classes: int = 10, dtype: Any = jnp.float32) -> Params:
    return {
        "conv1": weights(f"{name}/conv1", 3, 3, 3, channels, dtype=dtype),
        "bias1": weights(f"{name}/bias1", channels, dtype=dtype),
        "conv2": weights(f"{name}/conv2", 3, 3, channels, 2 * channels, dtype=dtype),
        "bias2": weights(f"{name}/bias2", 2 * channels, dtype=dtype),
        "dense": weights(f"{name}/dense", 2 * channels, classes, dtype=dtype),
    }


def cnn(params: Params, images: jax.Array) -> jax.Array:
    x = pool(jax.nn.relu(convolve(images, params["conv1"]) + params["bias1"]))
    x = jax.nn.relu(convolve(x, params["conv2"], stride=2) + params["bias2"])
    return x.mean((1, 2)) @ params["dense"]


def resnet_params(name: str, channels: int, dtype: Any = jnp.float32) -> Params:
    return {
        "conv1": weights(f"{name}/conv1", 3, 3, channels, 2 * channels, dtype=dtype),
        "scale1": weights(f"{name}/scale1", 2 * channels, dtype=dtype),
        "conv2": weights(f"{name}/conv2", 3, 3, 2 * channels, 2 * channels, dtype=dtype),
        "scale2": weights(f"{name}/scale2", 2 * channels, dtype=dtype),
        "shortcut": weights(f"{name}/shortcut", 1, 1, channels, 2 * channels, dtype=dtype),
        "dense": weights(f"{name}/dense", 2 * channels, 2 * channels, dtype=dtype),
    }


def resnet_block(params: Params, x: jax.Array) -> jax.Array:
    """Two 3x3 convolutions around which the input is added; the normalisation is folded into scales."""
    y = jax.nn.relu(convolve(x, params["conv1"], stride=2) * params["scale1"])
    y = convolve(y, params["conv2"]) * params["scale2"]
    y = jax.nn.relu(y + convolve(x, params["shortcut"], stride=2))
    return y.mean((1, 2)) @ params["dense"]


def separable_params(name: str, channels: int, dtype: Any = jnp.float32) -> Params:
    return {
        "depthwise": weights(f"{name}/depthwise", 3, 3, 1, channels, dtype=dtype),
        "pointwise": weights(f"{name}/pointwise", 1, 1, channels, 2 * channels, dtype=dtype),
        "bias": weights(f"{name}/bias", 2 * channels, dtype=dtype),
        "grouped": weights(f"{name}/grouped", 3, 3, channels, 2 * channels, dtype=dtype),
        "dilated": weights(f"{name}/dilated", 3, 3, 2 * channels, channels, dtype=dtype),
    }


def separable(params: Params, x: jax.Array) -> jax.Array:
    """Depthwise, pointwise, grouped by two, and dilated convolutions one after another."""
    x = convolve(x, params["depthwise"], groups=x.shape[-1])
    x = jax.nn.relu6(convolve(x, params["pointwise"]) + params["bias"])
    x = jax.nn.relu(convolve(x, params["grouped"], groups=2))
    return convolve(x, params["dilated"], dilation=2)
