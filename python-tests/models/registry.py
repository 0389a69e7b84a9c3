"""All models in the sizes and element types in which they are captured and compared."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import cnn, experts, quantized, recurrent, training, transformer
from .data import activations, integers
from .mlp import layers, mlp


@dataclass(frozen=True)
class Variant:
    """A model's function and how to make its arguments."""

    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    # Of the largest magnitude in the reference; integers are compared exactly.
    tolerance: float


VARIANTS: dict[str, Variant] = {}

TYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16}
# A product of bf16 is rounded to 8 bits; a few of them follow each other in every model.
TOLERANCE = {"f32": 2e-5, "bf16": 4e-2}


def add(
    name: str, function: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]], elem: str = "f32"
) -> None:
    def called(*values: Any) -> Any:
        return function(*values)

    # XLA names the module after it.
    called.__name__ = name
    VARIANTS[name] = Variant(called, arguments, TOLERANCE[elem])


def labels(name: str, *shape: int, classes: int) -> jax.Array:
    return integers(f"{name}/labels", *shape, low=0, high=classes, dtype=np.int32)


def add_mlp() -> None:
    for elem, dtype in TYPES.items():
        for batch, sizes in [
            (8, [32, 64, 10]),
            (32, [48, 96, 96, 10]),
            (17, [33, 65, 10]),
            (64, [128, 256, 64]),
        ]:
            name = f"mlp_{elem}_{batch}x{sizes[0]}x{sizes[1]}"

            def arguments(n: str = name, b: int = batch, s: list[int] = sizes, d: Any = dtype) -> Any:
                return layers(n, s, d), activations(f"{n}/x", b, s[0], dtype=d)

            add(name, mlp, arguments, elem)

            def labelled(
                n: str = name, make: Callable[[], Any] = arguments, b: int = batch, c: int = sizes[-1]
            ) -> Any:
                return (*make(), labels(n, b, classes=c))

            add(f"{name}_train", training.step(mlp), labelled, elem)


def add_transformer() -> None:
    layer = {"encoder": transformer.encoder_layer, "decoder": transformer.decoder_layer}
    for elem, dtype in TYPES.items():
        for kind, function in layer.items():
            for batch, length, width, heads in [(1, 16, 32, 1), (2, 24, 64, 2), (1, 64, 64, 1)]:
                name = f"{kind}_{elem}_{batch}x{length}x{width}x{heads}"
                model = functools.partial(function, heads=heads)

                def arguments(
                    n: str = name,
                    s: tuple[int, ...] = (batch, length, width),
                    d: Any = dtype,
                    g: bool = kind == "decoder",
                ) -> Any:
                    params = transformer.layer_params(n, s[2], 2 * s[2], d, gated=g)
                    return params, activations(f"{n}/x", *s, dtype=d)

                add(name, model, arguments, elem)
                if length < 64:

                    def labelled(
                        n: str = name,
                        make: Callable[[], Any] = arguments,
                        s: tuple[int, ...] = (batch, length, width),
                    ) -> Any:
                        return (*make(), labels(n, *s[:2], classes=s[2]))

                    add(f"{name}_train", training.step(model), labelled, elem)
        for batch, length, width in [(4, 32, 32), (8, 40, 64)]:
            name = f"decode_{elem}_{batch}x{length}x{width}"

            def cached(n: str = name, b: int = batch, t: int = length, w: int = width, d: Any = dtype) -> Any:
                params = transformer.layer_params(n, w, 2 * w, d, gated=True)
                cache = [activations(f"{n}/{key}", b, t, w, dtype=d) for key in ("keys", "values")]
                return params, activations(f"{n}/x", b, w, dtype=d), *cache

            add(name, transformer.decode_step, cached, elem)


def add_recurrent() -> None:
    cells = {"lstm": (recurrent.lstm, recurrent.lstm_params), "gru": (recurrent.gru, recurrent.gru_params)}
    for elem, dtype in TYPES.items():
        for kind, (function, make) in cells.items():
            for time, batch, inputs, units in [(5, 8, 16, 32), (3, 16, 40, 48)]:
                name = f"{kind}_{elem}_{time}x{batch}x{inputs}x{units}"

                def arguments(
                    n: str = name,
                    s: tuple[int, ...] = (time, batch, inputs),
                    u: int = units,
                    d: Any = dtype,
                    m: Callable[..., Any] = make,
                ) -> Any:
                    return m(n, s[2], u, d), activations(f"{n}/x", *s, dtype=d)

                add(name, function, arguments, elem)


def add_experts() -> None:
    for elem, dtype in TYPES.items():
        for tokens, width, hidden, count in [(16, 32, 64, 4), (24, 48, 40, 3)]:
            name = f"experts_{elem}_{tokens}x{width}x{hidden}x{count}"

            def arguments(
                n: str = name,
                t: int = tokens,
                w: int = width,
                h: int = hidden,
                e: int = count,
                d: Any = dtype,
            ) -> Any:
                return experts.experts_params(n, w, h, e, d), activations(f"{n}/x", t, w, dtype=d)

            add(name, experts.mixture, arguments, elem)


def add_images() -> None:
    networks: dict[str, tuple[Callable[..., Any], Callable[..., Any], int | None]] = {
        "cnn": (cnn.cnn, cnn.cnn_params, 3),
        "resnet": (cnn.resnet_block, cnn.resnet_params, None),
        "separable": (cnn.separable, cnn.separable_params, None),
    }
    for elem, dtype in TYPES.items():
        for kind, (function, make, inputs) in networks.items():
            for batch, size, channels in [(2, 8, 8), (1, 11, 16), (4, 14, 32)]:
                name = f"{kind}_{elem}_{batch}x{size}x{channels}"

                def arguments(
                    n: str = name,
                    m: Callable[..., Any] = make,
                    s: tuple[int, ...] = (batch, size, size, inputs or channels),
                    c: int = channels,
                    d: Any = dtype,
                ) -> Any:
                    return m(n, c, dtype=d), activations(f"{n}/x", *s, dtype=d)

                add(name, function, arguments, elem)
                if kind != "separable" and size < 14:
                    classes = 10 if kind == "cnn" else 2 * channels

                    def labelled(
                        n: str = name, a: Callable[[], Any] = arguments, b: int = batch, c: int = classes
                    ) -> Any:
                        return (*a(), labels(n, b, classes=c))

                    add(f"{name}_train", training.step(function), labelled, elem)


def add_quantized() -> None:
    for batch, sizes in [(16, [32, 64, 16]), (13, [70, 33, 20]), (64, [128, 128, 32]), (4, [256, 96, 10])]:
        for kind, function in [("shifted", quantized.shifted_layers), ("scaled", quantized.scaled_layers)]:
            name = f"int8_{kind}_{batch}x{sizes[0]}x{sizes[1]}"

            def arguments(n: str = name, b: int = batch, s: list[int] = sizes) -> Any:
                return quantized.params(n, s), integers(f"{n}/x", b, s[0])

            add(name, function, arguments)
    for batch, size, channels in [(1, 8, 8), (2, 9, 16), (1, 14, 32)]:
        name = f"int8_convolutions_{batch}x{size}x{channels}"

        def images(n: str = name, b: int = batch, s: int = size, c: int = channels) -> Any:
            return quantized.convolution_params(n, c), integers(f"{n}/x", b, s, s, c)

        add(name, quantized.convolutions, images)


add_mlp()
add_transformer()
add_recurrent()
add_experts()
add_images()
add_quantized()
