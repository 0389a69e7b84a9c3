"""``random_programs.py FILE ELEM FIRST COUNT`` runs programs drawn by seed, their results into a pickle.

A program is a jitted function of a few arrays: products with any dimensions contracted and batched,
elementwise operations, reductions and movements of data over values drawn from all that came before, some of
it in a loop, under vmap or differentiated. The same on every platform. Runs in a process of its own, because
JAX takes its platform once per process.
"""

from __future__ import annotations

import json
import pickle
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ELEMS: dict[str, Any] = {"int8": jnp.int8, "uint8": jnp.uint8, "f32": jnp.float32, "bf16": jnp.bfloat16}
# Below, at and above the tiles of the targets, ones and primes.
SIZES = (1, 2, 3, 7, 8, 13, 16, 16, 17, 32, 33, 48, 64, 65)
LARGEST = 40_000

Values = list[jax.Array]
Step = Callable[[Values], jax.Array]


class Drawn:
    """A program while it is drawn: its steps, and what each makes, known from abstract evaluation."""

    def __init__(self, seed: int, elem: str) -> None:
        self.random = np.random.default_rng(seed)
        self.elem = ELEMS[elem]
        self.integer = jnp.issubdtype(self.elem, jnp.integer)
        self.values: list[jax.ShapeDtypeStruct] = []
        self.inputs: list[np.ndarray] = []
        self.steps: list[Step] = []
        self.text: list[str] = []

    def one(self, choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def add(self, text: str, step: Step) -> None:
        """Keeps a step whose result has a legal and not too large shape."""
        before = len(self.values)
        try:
            made = jax.eval_shape(lambda *v: step(list(v)), *self.values)
        except (TypeError, ValueError, ZeroDivisionError):
            return
        if not isinstance(made, jax.ShapeDtypeStruct) or made.size > LARGEST or made.size == 0:
            return
        self.values.append(made)
        self.steps.append(step)
        self.text.append(f"v{before} = {text}  # {made.dtype}{list(made.shape)}")

    def input(self, shape: list[int]) -> None:
        if self.integer:
            info = jnp.iinfo(self.elem)
            array = self.random.integers(info.min, info.max + 1, shape)
        else:
            array = self.random.uniform(-1, 1, shape)
        self.values.append(jax.ShapeDtypeStruct(tuple(shape), self.elem))
        self.inputs.append(np.asarray(array, dtype=np.float64).astype(self.elem))
        self.text.append(f"v{len(self.values) - 1} = input  # {self.elem.__name__}{shape}")

    def pick(self, test: Callable[[jax.ShapeDtypeStruct], bool] = lambda _: True) -> int | None:
        """One of the values that pass, the later ones likelier."""
        fit = [i for i, value in enumerate(self.values) if test(value)]
        return None if not fit else fit[-1 - int(min(self.random.geometric(0.4) - 1, len(fit) - 1))]

    def product(self) -> None:
        a = self.pick(lambda v: v.ndim >= 1 and v.dtype == self.elem)
        if a is None:
            return
        shape = self.values[a].shape
        k = int(self.random.integers(len(shape)))
        batched = [d for d in range(len(shape)) if d != k and self.random.random() < 0.25]
        wanted = [shape[d] for d in batched] + [shape[k]]
        b = self.pick(
            lambda v: v.dtype == self.elem and v.ndim >= len(wanted) and set(wanted) <= set(v.shape)
        )
        if b is None or self.random.random() < 0.4:
            extents = [*wanted, *(int(self.one(SIZES)) for _ in range(int(self.random.integers(1, 3))))]
            order = self.random.permutation(len(extents))
            self.input([extents[d] for d in order])
            b = len(self.values) - 1
            places = [int(np.flatnonzero(order == d)[0]) for d in range(len(wanted))]
        else:
            free, places = list(range(self.values[b].ndim)), []
            for extent in wanted:
                fit = [d for d in free if self.values[b].shape[d] == extent]
                if not fit:
                    return
                places.append(int(self.one(fit)))
                free.remove(places[-1])
        numbers = (([k], [places[-1]]), (batched, places[:-1]))
        wide = jnp.int32 if self.integer else self.one([None, jnp.float32])
        scale = 1.0 if self.integer else 1.0 / float(np.sqrt(shape[k]))

        def step(v: Values) -> jax.Array:
            made = lax.dot_general(v[a], v[b], numbers, preferred_element_type=wide)
            return made if self.integer else made * jnp.asarray(scale, made.dtype)

        self.add(f"dot(v{a}, v{b}, {numbers}, {wide and wide.__name__})", step)

    def unary(self) -> None:
        a = self.pick()
        if a is None:
            return
        names = (
            ["negative", "abs", "sign"]
            if self.integer
            else ["negative", "abs", "tanh", "exp", "square", "sin"]
        )
        name = self.one([*names, "relu", "clip"])
        bounds = sorted(int(n) for n in self.random.integers(-100, 100, 2)) if self.integer else [-0.5, 0.75]

        def step(v: Values) -> jax.Array:
            if name == "relu":
                return jnp.maximum(v[a], 0)
            if name == "clip":
                info = None if not jnp.issubdtype(v[a].dtype, jnp.integer) else jnp.iinfo(v[a].dtype)
                low, high = (max(b, info.min) if info else b for b in bounds)
                return jnp.clip(v[a], low, high)
            # Bounded, so that no sum of exponentials of exponentials leaves the range.
            operand = jnp.clip(v[a], -2, 2) if name in ("exp", "square") else v[a]
            made: jax.Array = getattr(jnp, name)(operand)
            return made

        self.add(f"{name}(v{a}) {bounds if name == 'clip' else ''}", step)

    def binary(self) -> None:
        a = self.pick()
        if a is None:
            return
        shape, dtype = self.values[a].shape, self.values[a].dtype
        b = self.pick(lambda v: v.dtype == dtype and v.shape == shape)
        kind = self.one(["value", "value", "row", "scalar"])
        name = self.one(["add", "subtract", "multiply", "maximum", "minimum"])
        if kind == "scalar":
            number = (
                int(self.random.integers(-9, 10))
                if self.integer
                else round(float(self.random.uniform(-2, 2)), 3)
            )
            if jnp.issubdtype(dtype, jnp.unsignedinteger):
                number = abs(number)
            self.add(
                f"{name}(v{a}, {number})", lambda v: getattr(jnp, name)(v[a], jnp.asarray(number, dtype))
            )
            return
        if kind == "row":
            d = int(self.random.integers(max(len(shape), 1))) if shape else 0
            b = self.pick(lambda v: v.dtype == dtype and bool(shape) and v.shape == (shape[d],))
            if b is None and shape and dtype == self.elem:
                self.input([shape[d]])
                b = len(self.values) - 1
            if b is None:
                return
            spread = [shape[d] if e == d else 1 for e in range(len(shape))]
            self.add(
                f"{name}(v{a}, v{b} along {d})", lambda v: getattr(jnp, name)(v[a], v[b].reshape(spread))
            )
            return
        if b is not None:
            self.add(f"{name}(v{a}, v{b})", lambda v: getattr(jnp, name)(v[a], v[b]))

    def reduction(self) -> None:
        a = self.pick(lambda v: v.ndim >= 1)
        if a is None:
            return
        shape = self.values[a].shape
        axes = [d for d in range(len(shape)) if self.random.random() < 0.5] or [0]
        names = ["max", "min", "sum"] if self.integer else ["max", "min", "mean"]
        name, kept = self.one(names), bool(self.random.random() < 0.4)
        if not self.integer and self.random.random() < 0.3:
            self.add(f"softmax(v{a}, {axes[-1]})", lambda v: jax.nn.softmax(v[a], axis=axes[-1]))
            return

        def step(v: Values) -> jax.Array:
            made: jax.Array = getattr(jnp, name)(v[a], axis=tuple(axes), keepdims=kept)
            return made

        self.add(f"{name}(v{a}, {axes}, {kept})", step)

    def movement(self) -> None:
        a = self.pick(lambda v: v.ndim >= 1)
        if a is None:
            return
        shape = self.values[a].shape
        d = int(self.random.integers(len(shape)))
        n = shape[d]
        low, high = sorted(int(i) for i in self.random.integers(0, n + 1, 2))
        stride = int(self.one([1, 1, 2, 3]))
        order = [int(i) for i in self.random.permutation(len(shape))]
        extents = [int(i) for i in self.random.integers(0, 3, 3)]
        index = tuple(slice(low, high, stride) if e == d else slice(None) for e in range(len(shape)))
        pads = [tuple(extents) if e == d else (0, 0, 0) for e in range(len(shape))]
        fill = int(self.one([0, 0, 1, 5]))
        flat = [e for e in shape if e != 1]
        merged = [shape[0] * shape[1], *shape[2:]] if len(shape) > 1 else [1, n]
        b = self.pick(lambda v: v.dtype == self.values[a].dtype and v.ndim == len(shape))
        steps: list[tuple[str, Step]] = [
            (f"transpose(v{a}, {order})", lambda v: jnp.transpose(v[a], order)),
            (f"v{a}[{d}: {low}:{high}:{stride}]", lambda v: v[a][index]),
            (f"pad(v{a}, {pads}, {fill})", lambda v: lax.pad(v[a], jnp.asarray(fill, v[a].dtype), pads)),
            (f"reverse(v{a}, {d})", lambda v: jnp.flip(v[a], d)),
            (f"reshape(v{a}, {flat})", lambda v: v[a].reshape(flat)),
            (f"reshape(v{a}, {merged})", lambda v: v[a].reshape(merged)),
            (f"concatenate(v{a}, v{b}, {d})", lambda v: jnp.concatenate([v[a], v[b or 0]], axis=d)),
            (f"roll(v{a}, {low}, {d})", lambda v: jnp.roll(v[a], low, d)),
            (f"take(v{a}, {d})", lambda v: jnp.take(v[a], jnp.arange(0, n, stride)[::-1], axis=d)),
            (f"broadcast(v{a}, 3)", lambda v: jnp.broadcast_to(v[a][None], (3, *shape))),
            (f"triangle(v{a})", lambda v: jnp.tril(v[a], low - high)),
        ]
        self.add(*self.one(steps))

    def conversion(self) -> None:
        a = self.pick()
        if a is None:
            return
        dtype = self.one([self.elem, jnp.int32 if self.integer else jnp.float32])

        def step(v: Values) -> jax.Array:
            if self.integer and dtype == self.elem:
                info = jnp.iinfo(self.elem)
                return jnp.clip(v[a] >> 3 if v[a].dtype == jnp.int32 else v[a], info.min, info.max).astype(
                    dtype
                )
            return v[a].astype(dtype)

        self.add(f"convert(v{a}, {dtype.__name__})", step)

    def selection(self) -> None:
        a = self.pick(lambda v: v.ndim >= 1)
        if a is None:
            return
        shape, dtype = self.values[a].shape, self.values[a].dtype
        b = self.pick(lambda v: v.shape == shape and v.dtype == dtype)
        d, limit = int(self.random.integers(len(shape))), int(self.random.integers(0, 20))

        def step(v: Values) -> jax.Array:
            return jnp.where(
                lax.broadcasted_iota(jnp.int32, shape, d) < limit, v[a], -v[b if b is not None else a]
            )

        self.add(f"where(iota {d} < {limit}, v{a}, -v{b})", step)

    def loop(self) -> None:
        a = self.pick(lambda v: v.ndim == 2 and v.shape[0] == v.shape[1] and v.dtype == self.elem)
        c = self.pick(lambda v: v.ndim == 2 and v.dtype == self.elem)
        if a is None or c is None or self.values[c].shape[1] != self.values[a].shape[0]:
            return
        trips, n = int(self.random.integers(1, 5)), self.values[a].shape[0]

        def body(carry: jax.Array, matrix: jax.Array) -> jax.Array:
            if self.integer:
                wide = lax.dot(carry, matrix, preferred_element_type=jnp.int32) >> 6
                return jnp.clip(wide, 0, 100).astype(self.elem)
            return jnp.tanh(carry @ matrix * jnp.asarray(1 / np.sqrt(n), self.elem))

        self.add(
            f"{trips} times v{c} @ v{a}",
            lambda v: lax.fori_loop(0, trips, lambda _, carry: body(carry, v[a]), v[c]),
        )

    def build(self) -> None:
        for _ in range(int(self.random.integers(1, 4))):
            self.input([int(self.one(SIZES)) for _ in range(int(self.random.integers(1, 4)))])
        kinds = [self.product] * 4 + [self.unary, self.binary] * 2
        kinds += [self.reduction, self.movement, self.movement, self.conversion, self.selection, self.loop]
        for _ in range(int(self.random.integers(3, 14))):
            self.one(kinds)()
        while not self.steps:
            self.product()
        self.wrap = self.one(["", "", "", "vmap", "" if self.integer else "grad"])


def outputs(program: Drawn) -> list[int]:
    """The last value and up to two others, none of them an input."""
    made = [i for i, text in enumerate(program.text) if " = input" not in text]
    return sorted({made[-1], *(program.one(made) for _ in range(int(program.random.integers(0, 3))))})


def run(elem: str, seed: int) -> tuple[str, list[np.ndarray] | str]:
    program = Drawn(seed, elem)
    program.build()
    results = outputs(program)
    kinds = [" = input" in text for text in program.text]

    def function(*inputs: jax.Array) -> list[jax.Array]:
        given, steps = iter(inputs), iter(program.steps)
        values: Values = []
        for is_input in kinds:
            values.append(next(given) if is_input else next(steps)(values))
        return [values[i] for i in results]

    inputs: list[Any] = [jnp.asarray(array) for array in program.inputs]
    called: Callable[..., Any] = function
    if program.wrap == "vmap":
        called = jax.vmap(function)
        inputs = [jnp.stack([array, array[::-1] if array.ndim else array]) for array in inputs]
    if program.wrap == "grad":
        called = jax.grad(lambda *v: sum(jnp.sum(r.astype(jnp.float32)) for r in function(*v)))
    text = "\n".join([*program.text, f"return {results} {program.wrap}"])
    try:
        return text, [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(called)(*inputs))]
    except Exception:
        return text, traceback.format_exc()


def main(file: Path, elem: str, first: int, count: int) -> None:
    results = {}
    for seed in range(first, first + count):
        results[seed] = run(elem, seed)
        if (seed - first) % 25 == 24:
            jax.clear_caches()
    regions: list[Any] = []
    if jax.default_backend() != "cpu" or "act" in str(jax.devices()[0]).lower():
        import act_pjrt

        regions = act_pjrt.regions()
    file.write_bytes(pickle.dumps({"results": results, "regions": json.dumps(regions)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
