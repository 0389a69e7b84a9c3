"""``convolutions.py FILE TYPE...`` runs random convolutions of these element types, results into a pickle.

Shapes, strides, dilations, paddings, groups and layouts are drawn by seed, the same on every platform. Runs
in a process of its own, because JAX takes its platform once per process.
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

TYPES = {"int8": (jnp.int8, jnp.int32), "f32": (jnp.float32, None), "bf16": (jnp.bfloat16, None)}
COUNT = 18
# From this one on padding may be negative, as in the gradients of convolutions with strides.
CROPPED = 14

LAYOUTS = {
    1: [("NWC", "WIO", "NWC"), ("NCW", "OIW", "NCW")],
    2: [("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"), ("NHWC", "OHWI", "NCHW")],
    3: [("NDHWC", "DHWIO", "NDHWC")],
}


def ordered(dims: dict[str, int], labels: str) -> list[int]:
    return [dims[label] for label in labels]


def draw(number: int) -> tuple[list[int], list[int], dict[str, Any]]:
    """Shapes of image and kernel and the attributes of one convolution."""
    random = np.random.default_rng(number)
    rank = int(random.choice([1, 2, 2, 2, 3]))
    image, kernel, result = LAYOUTS[rank][random.integers(len(LAYOUTS[rank]))]
    groups = int(random.choice([1, 1, 1, 2]))
    channels, features = (groups * int(n) for n in random.integers(1, 10, 2))
    axes = [label for label in image if label not in "NC"]
    lowest, smallest = (0, 5) if number < CROPPED else (-2, 9)
    sizes = {axis: smallest + int(random.integers(7)) for axis in axes}
    taps = {axis: int(random.integers(1, 4)) for axis in axes}
    attributes = {
        "window_strides": [int(random.integers(1, 3)) for _ in axes],
        "padding": [[int(n) for n in random.integers(lowest, 3 + lowest, 2)] for _ in axes],
        "lhs_dilation": [int(random.choice([1, 1, 1, 2])) for _ in axes],
        "rhs_dilation": [int(random.choice([1, 1, 2])) for _ in axes],
        "dimension_numbers": (image, kernel, result),
        "feature_group_count": groups,
    }
    lhs = ordered({"N": int(random.integers(1, 3)), "C": channels, **sizes}, image)
    rhs = ordered({"I": channels // groups, "O": features, **taps}, kernel)
    return lhs, rhs, attributes


def values(random: np.random.Generator, shape: list[int], elem: Any) -> jax.Array:
    if elem == jnp.int8:
        return jnp.asarray(random.integers(-128, 128, shape).astype(np.int8))
    return jnp.asarray(random.standard_normal(shape).astype(np.float32)).astype(elem)


def run(name: str, number: int) -> np.ndarray:
    elem, preferred = TYPES[name]
    lhs, rhs, attributes = draw(number)
    random = np.random.default_rng(1000 + number)
    x, w = values(random, lhs, elem), values(random, rhs, elem)
    bias = values(random, [1], elem).astype(preferred or elem)

    def convolved(x: jax.Array, w: jax.Array) -> jax.Array:
        y = lax.conv_general_dilated(x, w, **attributes, preferred_element_type=preferred)
        # Every other one with something after it that may join the region.
        return jnp.maximum(y + bias, 0) if number % 2 else y

    return np.asarray(jax.jit(convolved)(x, w))


def main(file: Path, names: list[str]) -> None:
    results = {(name, number): run(name, number) for name in names for number in range(COUNT)}
    regions: list[Any] = []
    if jax.default_backend() != "cpu" or "act" in str(jax.devices()[0]).lower():
        import act_pjrt

        regions = act_pjrt.regions()
    file.write_bytes(pickle.dumps({"results": results, "regions": json.dumps(regions)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
