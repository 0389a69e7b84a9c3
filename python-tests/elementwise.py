"""``elementwise.py FOLDER`` writes the results of every elementwise operation on every element type it takes.

Runs in a process of its own, because JAX takes its platform once per process.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

# Below, at and above what a vectorised loop takes at once, and long enough for whole blocks of it.
SIZES = (7, 33, 64, 4096)

FLOATS = ("float16", "bfloat16", "float32", "float64")
SIGNED = ("int4", "int8", "int16", "int32", "int64")
UNSIGNED = ("uint4", "uint8", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")
ALL = (*FLOATS, *SIGNED, *UNSIGNED, *COMPLEX)

# Where a function of the reals is defined and neither overflows nor loses everything to rounding.
LINE, UNIT, POSITIVE, ABOVE_ONE, MODERATE = (
    (-50.0, 50.0),
    (-0.99, 0.99),
    (1e-3, 60.0),
    (1.0, 60.0),
    (-5.0, 5.0),
)

# name: (function, interval that the operands are drawn from)
FLOAT_UNARY: dict[str, tuple[Callable[..., Any], tuple[float, float]]] = {
    "acos": (lax.acos, UNIT),
    "acosh": (lax.acosh, ABOVE_ONE),
    "asin": (lax.asin, UNIT),
    "asinh": (lax.asinh, LINE),
    "atan": (lax.atan, LINE),
    "atanh": (lax.atanh, UNIT),
    "cbrt": (lax.cbrt, LINE),
    "ceil": (lax.ceil, LINE),
    "cos": (lax.cos, LINE),
    "cosh": (lax.cosh, MODERATE),
    "digamma": (lax.digamma, POSITIVE),
    "erf": (lax.erf, MODERATE),
    "erf_inv": (lax.erf_inv, UNIT),
    "erfc": (lax.erfc, MODERATE),
    "exp": (lax.exp, MODERATE),
    "exp2": (lax.exp2, MODERATE),
    "expm1": (lax.expm1, MODERATE),
    "floor": (lax.floor, LINE),
    "is_finite": (lax.is_finite, LINE),
    "lgamma": (lax.lgamma, POSITIVE),
    "log": (lax.log, POSITIVE),
    "log1p": (lax.log1p, POSITIVE),
    "logistic": (lax.logistic, MODERATE),
    "neg": (lax.neg, LINE),
    "reciprocal": (lax.reciprocal, POSITIVE),
    "round": (lambda x: lax.round(x), LINE),
    "round_to_even": (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), LINE),
    "rsqrt": (lax.rsqrt, POSITIVE),
    "sign": (lax.sign, LINE),
    "sin": (lax.sin, LINE),
    "sinh": (lax.sinh, MODERATE),
    "sqrt": (lax.sqrt, POSITIVE),
    "square": (lax.square, LINE),
    "tan": (lax.tan, MODERATE),
    "tanh": (lax.tanh, MODERATE),
    "abs": (lax.abs, LINE),
    "integer_pow": (lambda x: lax.integer_pow(x, 3), MODERATE),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 4), LINE),
}
FLOAT_BINARY: dict[str, tuple[Callable[..., Any], tuple[float, float]]] = {
    "add": (lax.add, LINE),
    "atan2": (lax.atan2, LINE),
    "div": (lax.div, POSITIVE),
    "max": (lax.max, LINE),
    "min": (lax.min, LINE),
    "mul": (lax.mul, LINE),
    "nextafter": (lax.nextafter, LINE),
    "pow": (lax.pow, (0.1, 4.0)),
    "rem": (lax.rem, POSITIVE),
    "sub": (lax.sub, LINE),
}
INTEGER_UNARY: dict[str, Callable[..., Any]] = {
    "abs": lax.abs,
    "clz": lax.clz,
    "neg": lax.neg,
    "not": lax.bitwise_not,
    "population_count": lax.population_count,
    "sign": lax.sign,
}
INTEGER_BINARY: dict[str, Callable[..., Any]] = {
    "add": lax.add,
    "and": lax.bitwise_and,
    "div": lax.div,
    "max": lax.max,
    "min": lax.min,
    "mul": lax.mul,
    "or": lax.bitwise_or,
    "rem": lax.rem,
    "shift_left": lax.shift_left,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    "shift_right_logical": lax.shift_right_logical,
    "sub": lax.sub,
    "xor": lax.bitwise_xor,
}
COMPLEX_OPERATIONS = (
    *("abs", "asinh", "cos", "cosh", "exp", "expm1", "log", "log1p", "neg", "rsqrt", "sin", "sinh", "sqrt"),
    *("square", "tan", "tanh", "add", "div", "mul", "sub"),
)
# What JAX lets one do with four-bit integers, besides converting and comparing them.
NARROW_OPERATIONS = ("neg", "add", "mul", "sub", "max", "min")
COMPARISONS = {"eq": lax.eq, "ne": lax.ne, "lt": lax.lt, "le": lax.le, "gt": lax.gt, "ge": lax.ge}


# Put in front of every longer float operand, whatever the interval.
EDGES = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-310, 6e-8, 3e38, -65504.0, 1e300)


def floats(n: int, interval: tuple[float, float], seed: int, edges: bool = True) -> np.ndarray[Any, Any]:
    """Numbers spread over an interval, in double precision, and the edge cases where there is room."""
    values = np.random.default_rng(seed).uniform(*interval, n)
    if edges and n >= 64:
        values[: len(EDGES)] = np.roll(EDGES, seed)
    return values


def integers(n: int, dtype: str, seed: int) -> jax.Array:
    """Integers over the whole range of their type."""
    info = jnp.iinfo(dtype)
    values = np.random.default_rng(seed).integers(
        int(info.min),
        int(info.max),
        n,
        endpoint=True,
        dtype=np.dtype("uint64" if dtype == "uint64" else "int64"),
    )
    return jnp.asarray(values).astype(dtype)


def operations(dtype: str, n: int) -> dict[str, tuple[Callable[..., Any], list[jax.Array]]]:
    """Every operation that takes this element type, with its operands."""
    result: dict[str, tuple[Callable[..., Any], list[jax.Array]]] = {}
    if dtype in FLOATS:
        for name, (function, interval) in FLOAT_UNARY.items():
            result[name] = function, [jnp.asarray(floats(n, interval, 1)).astype(dtype)]
        for name, (function, interval) in FLOAT_BINARY.items():
            result[name] = function, [jnp.asarray(floats(n, interval, seed)).astype(dtype) for seed in (1, 2)]
    elif dtype in COMPLEX:
        table = {name: function for name, (function, _) in (FLOAT_UNARY | FLOAT_BINARY).items()}
        for name in COMPLEX_OPERATIONS:
            values = [
                floats(n, (0.2, 2.0), s, False) + 1j * floats(n, (0.2, 1.5), s + 9, False) for s in (1, 2)
            ]
            arity = 2 if name in FLOAT_BINARY else 1
            result[name] = table[name], [jnp.asarray(value).astype(dtype) for value in values[:arity]]
    else:
        x, y = integers(n, dtype, 1), integers(n, dtype, 2)
        for name, unary in INTEGER_UNARY.items():
            if name == "abs" and dtype in UNSIGNED:
                continue
            result[name] = unary, [x]
        for name, binary in INTEGER_BINARY.items():
            # XLA defines division by zero; shifts only by less than the width are the same everywhere.
            operand = y & (jnp.iinfo(dtype).bits - 1) if name.startswith("shift") else y
            result[name] = binary, [x, operand.astype(dtype)]
        if dtype in ("int4", "uint4"):
            result = {name: result[name] for name in NARROW_OPERATIONS}
    if n not in (min(SIZES), max(SIZES)):
        return result
    x, y = next(operands for _, operands in result.values() if len(operands) == 2)
    for name, comparison in COMPARISONS.items():
        if dtype not in COMPLEX or name in ("eq", "ne"):
            result[name] = comparison, [x, y]
    for target in ALL:
        # A float out of an integer's range has no defined integer; these here are within int8's.
        if dtype in FLOATS and target not in (*FLOATS, *COMPLEX):
            x = jnp.asarray(floats(n, LINE, 3, False)).astype(dtype)
        if not (dtype in COMPLEX and target not in COMPLEX) and not (
            dtype in FLOATS and target in (*UNSIGNED, "int4")
        ):
            result[f"to {target}"] = lambda v, t=target: lax.convert_element_type(v, t), [x]
    return result


def run(folder: Path) -> None:
    """Writes ``DTYPE-N.pickle`` for every type and size: a dictionary of arrays."""
    with jax.enable_x64(True):
        for dtype in ALL:
            for n in SIZES:
                table = operations(dtype, n)
                functions = {name: function for name, (function, _) in table.items()}
                compiled = jax.jit(
                    lambda operands, f=functions: {name: f[name](*operands[name]) for name in f}
                )
                results = compiled({name: operands for name, (_, operands) in table.items()})
                host = {name: np.asarray(value) for name, value in results.items()}
                (folder / f"{dtype}-{n}.pickle").write_bytes(pickle.dumps(host))


if __name__ == "__main__":
    run(Path(sys.argv[1]))
