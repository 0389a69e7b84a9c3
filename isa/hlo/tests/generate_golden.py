"""Computes with XLA's CPU backend what golden.rs expects of the parser and the evaluator.

    JAX_PLATFORMS=cpu python isa/hlo/tests/generate_golden.py

writes golden/xla_cpu.json.gz: tensors by name, and cases of HLO text as XLA prints it, the names of the
inputs, and per root the bytes of the result with the distance allowed ("exact", or so many units in the last
place, or so many roundings relative to the largest element, for sums whose order is free).
"""

import gzip
import json
import pathlib
from collections.abc import Callable, Iterator

import jax
import ml_dtypes
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)

Array = np.ndarray
Roots = list[tuple[str, Callable[..., jax.Array]]]

NAMES = {
    "pred": np.bool_, "s4": ml_dtypes.int4, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "u4": ml_dtypes.uint4, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
INTS = [name for name in NAMES if name[0] in "su"]
FLOATS = ["f16", "bf16", "f32", "f64"]
DIRECTIONS = [lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge]

# Units in the last place by which XLA's approximations are off a correctly rounded result, with a margin.
MATH_ULPS = {"f16": 1, "bf16": 1, "f32": 6, "f64": 16}


class Golden:
    """What is written: named tensors and the cases that use them."""

    def __init__(self) -> None:
        """Start without either."""
        self.tensors: dict[str, Array] = {}
        self.cases: list[dict[str, object]] = []

    def tensor(self, name: str, value: Array) -> str:
        """Keep a tensor under a new name and give the name back."""
        assert name not in self.tensors, name
        self.tensors[name] = value
        return name

    def case(self, name: str, inputs: list[str], roots: Roots) -> None:
        """Add one module whose roots are functions of all inputs; each is named by its allowed distance."""
        arrays = [self.tensors[i] for i in inputs]
        function = jax.jit(lambda *xs: tuple(f(*xs) for _, f in roots), keep_unused=True)
        text = function.lower(*arrays).compiler_ir("hlo").as_hlo_text()
        results = [np.asarray(r) for r in function(*arrays)]
        outputs = [[allowed, hexadecimal(r)] for (allowed, _), r in zip(roots, results, strict=True)]
        self.cases.append({"name": name, "hlo": text, "inputs": inputs, "outputs": outputs})

    def write(self, path: pathlib.Path) -> None:
        """Write everything, the same bytes for the same content."""
        shape = {dtype: name for name, dtype in ((n, np.dtype(d)) for n, d in NAMES.items())}
        tensors = {n: [shape[t.dtype], list(t.shape), hexadecimal(t)] for n, t in self.tensors.items()}
        # One case per line keeps the differences readable.
        lines = ",\n".join(json.dumps(case) for case in self.cases)
        document = f'{{"tensors": {json.dumps(tensors)},\n"cases": [\n{lines}\n]}}\n'
        path.write_bytes(gzip.compress(document.encode(), mtime=0))


def hexadecimal(array: Array) -> str:
    """Give the bytes as a literal keeps them: a 4-bit integer extended to a byte."""
    if array.dtype == ml_dtypes.int4:
        array = array.astype(np.int8)
    if array.dtype == ml_dtypes.uint4:
        array = array.astype(np.uint8)
    return array.tobytes().hex()


def exact(*functions: Callable[..., jax.Array]) -> Roots:
    """Demand the result of each function bit for bit."""
    return [("exact", f) for f in functions]


def int_values(name: str, rng: np.random.Generator) -> Iterator[Array]:
    """Give two tensors: every pair of edge values, then random ones."""
    bits = int(name[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if name[0] == "s" else (0, (1 << bits) - 1)
    edges = sorted({low, low + 1, high, high - 1, 0, 1, 3, max(low, -1), bits - 1 if bits > 4 else 2})
    left, right = np.meshgrid(np.array(edges, object), np.array(edges, object))
    for pairs in (left, right):
        drawn = rng.integers(low, high, 24, np.int64 if low else np.uint64, endpoint=True)
        yield np.concatenate([pairs.ravel(), drawn.astype(object)]).astype(NAMES[name])


def special(name: str) -> Array:
    """Give the edges of a float type and some ties of rounding."""
    info = ml_dtypes.finfo(NAMES[name])
    tiny, largest = float(info.smallest_normal), float(info.max)
    values = [np.nan, np.inf, 0.0, float(info.smallest_subnormal), tiny * 0.5, tiny, 0.5, 1.0, 1.5, 2.5]
    values += [largest]
    return np.array(values + [-v for v in values], NAMES[name])


def float_values(name: str, rng: np.random.Generator) -> Iterator[Array]:
    """Give two tensors: every pair of special values, then random ones."""
    left, right = np.meshgrid(special(name), special(name))
    for pairs in (left, right):
        # float32 draws: a narrower type would be filled by rounding them.
        yield np.concatenate([pairs.ravel(), (rng.normal(size=44) * 50).astype(NAMES[name])])


def integers(golden: Golden, rng: np.random.Generator) -> None:
    """Elementwise operators of integers and truth values."""
    for name in INTS:
        a, b = (golden.tensor(f"{name}.{x}", v) for x, v in zip("ab", int_values(name, rng), strict=True))
        binary = [
            lax.add, lax.sub, lax.mul, lax.div, lax.rem, lax.max, lax.min, lax.bitwise_and, lax.bitwise_or,
            lax.bitwise_xor, lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic,
        ]  # fmt: skip
        clamps = [lambda x, y: lax.clamp(y[0], x, y), lambda x, y: lax.clamp(y, x, x[1])]
        golden.case(f"{name} binary", [a, b], exact(*binary, *DIRECTIONS, *clamps))
        unary = [lax.neg, lax.bitwise_not, lax.clz]
        # XLA counts the bits of a negative s4 in its byte; jax has no abs and sign of 4-bit integers.
        unary += [] if name == "s4" else [lax.population_count]
        unary += [lax.abs, lax.sign] if name[0] == "s" and name != "s4" else []
        golden.case(f"{name} unary", [a], exact(*unary))
    p = golden.tensor("pred.a", np.array([0, 0, 1, 1], bool))
    q = golden.tensor("pred.b", np.array([0, 1, 0, 1], bool))
    logic = [lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.max, lax.min, *DIRECTIONS]
    golden.case("pred binary", [p, q], exact(*logic, lambda x, y: lax.bitwise_not(x)))


def floats(golden: Golden, rng: np.random.Generator) -> None:
    """Elementwise operators of floats that IEEE 754 defines."""
    for name in FLOATS:
        a, b = (golden.tensor(f"{name}.{x}", v) for x, v in zip("ab", float_values(name, rng), strict=True))
        binary = [lax.add, lax.sub, lax.mul, lax.div, lax.max, lax.min, *DIRECTIONS]
        binary += [lambda x, y: lax.clamp(y[0], x, y), lambda x, y: lax.clamp(y, x, x[7])]
        golden.case(f"{name} binary", [a, b], exact(*binary, lambda x, y: lax.select(x[0] < y[7], x, y)))
        s = golden.tensor(f"{name}.special", np.concatenate([special(name), golden.tensors[a][-44:]]))
        nearest = [lax.RoundingMethod.TO_NEAREST_EVEN, lax.RoundingMethod.AWAY_FROM_ZERO]
        rounds = [lambda x, m=m: lax.round(x, m) for m in nearest]
        unary = [lax.neg, lax.abs, lax.sign, lax.ceil, lax.floor, lax.sqrt, lax.is_finite]
        golden.case(f"{name} unary", [s], exact(*unary, *rounds))
        kept = [(8, 7), (5, 10), (5, 2), (4, 3), (2, 3), (8, 0), (11, 30)]
        precisions = [lambda x, e=e, m=m: lax.reduce_precision(x, e, m) for e, m in kept]
        golden.case(f"{name} reduce-precision", [s], exact(*precisions))


def functions(golden: Golden, rng: np.random.Generator) -> None:
    """Transcendental functions, on values where XLA's approximations hold: no denormals."""
    for name in FLOATS:
        near = np.concatenate([[0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], rng.normal(size=57) * 3])
        x = golden.tensor(f"{name}.near", near.astype(NAMES[name]))
        far = np.concatenate([near[:7][::-1], rng.normal(size=57) * 3])
        y = golden.tensor(f"{name}.near2", far.astype(NAMES[name]))
        unary = [
            lax.exp, lax.expm1, lax.log, lax.log1p, lax.logistic, lax.rsqrt, lax.cbrt, lax.sin, lax.cos,
            lax.tan, lax.tanh, lax.erf,
        ]  # fmt: skip
        allowed = f"{MATH_ULPS[name]} ulps"
        golden.case(f"{name} functions", [x], [(allowed, f) for f in unary])
        golden.case(f"{name} power", [x, y], [(allowed, lax.pow), (allowed, lax.atan2), ("exact", lax.rem)])


def conversions(golden: Golden) -> None:
    """Every element type to every other, by value; some by bits."""
    for name in FLOATS:
        # Ends of integer ranges, ties of narrower floats, values beyond both.
        edges = [0.5, 1.5, 2.5, 7.5, 8.5, 127.5, 128.5, 255.5, 256.5, 32768.0, 65520.0, 2.0**31]
        edges += [2.0**32, 2.0**63, 2.0**64, 1e30, 3.4e38]
        edges += [1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40]
        with np.errstate(over="ignore"):
            values = np.array(edges + [-e for e in edges]).astype(NAMES[name])
        golden.tensor(f"{name}.convert", np.concatenate([special(name), values]))
    for source in NAMES:
        x = f"{source}.convert" if source in FLOATS else f"{source}.a"
        # jax compares with 0 where HLO would convert to pred, and LLVM tests a bf16 for that by its bits:
        # whether a denormal counts as 0 then depends on the code around.
        targets = [t for t in NAMES if t != source and (source, t) != ("bf16", "pred")]
        to = [lambda v, t=t: lax.convert_element_type(v, NAMES[t]) for t in targets]
        golden.case(f"convert {source}", [x], exact(*to))
    for source, targets in {"f32": ["s32", "u8", "bf16"], "f64": ["s64", "f32", "s16"], "s8": ["u8"]}.items():
        x = f"{source}.special" if source in FLOATS else f"{source}.a"
        to = [lambda v, t=t: lax.bitcast_convert_type(v, NAMES[t]) for t in targets]
        golden.case(f"bitcast {source}", [x], exact(*to))
    grouped = golden.tensor("u8.grouped", np.arange(48, dtype=np.uint8).reshape(3, 4, 4) * 5)
    golden.case("bitcast u8", [grouped], exact(lambda v: lax.bitcast_convert_type(v, np.uint32)))


def movement(golden: Golden) -> None:
    """Operators that move data, for every width of element."""
    i = golden.tensor("index", np.array([2, -1, 100], np.int32))
    for name in ["pred", "s4", "u8", "bf16", "s32", "f64"]:
        x = golden.tensor(f"{name}.cube", (np.arange(60) % 2 if name == "pred" else np.arange(60) % 7)
                          .reshape(3, 4, 5).astype(NAMES[name]))  # fmt: skip
        zero = np.zeros((), NAMES[name])
        roots = [
            lambda x, i: lax.transpose(x, (2, 0, 1)),
            lambda x, i: lax.reshape(x, (6, 10)),
            lambda x, i: lax.rev(x, (0, 2)),
            lambda x, i: lax.broadcast_in_dim(x, (3, 2, 4, 5), (0, 2, 3)),
            lambda x, i: lax.slice(x, (0, 1, 0), (3, 4, 5), (2, 1, 3)),
            lambda x, i: lax.slice(x, (1, 1, 2), (1, 4, 5)),
            lambda x, i: lax.concatenate([x, x[:, :1], x], 1),
            lambda x, i, zero=zero: lax.pad(x, x[0, 0, 1], ((1, 2, 0), (-1, -2, 1), (0, -3, 2))),
            lambda x, i, zero=zero: lax.pad(x, zero, ((-2, -1, 0), (0, 0, 0), (0, 0, 0))),
            lambda x, i: lax.dynamic_slice(x, (i[0], i[1], i[2]), (2, 3, 2)),
            lambda x, i: lax.dynamic_update_slice(x, x[:2, :1], (i[0], i[1], i[2])),
        ]
        if name in ("pred", "s4"):
            # jax cannot index these on the host.
            roots = [r for k, r in enumerate(roots) if k != 7]
        golden.case(f"{name} movement", [x, i], exact(*roots))
    iotas = [lambda i, t=t: lax.broadcasted_iota(NAMES[t], (300,), 0) for t in NAMES if t not in ("pred",)]
    golden.case("iota", [i], exact(*iotas, lambda i: lax.broadcasted_iota(np.int32, (2, 3, 4), 1)))


def reductions(golden: Golden, rng: np.random.Generator) -> None:
    """Reduce with every combiner."""
    for name in ["s8", "s32", "u16", "s64"]:
        low = -100 if name[0] == "s" else 0
        x = golden.tensor(f"{name}.sum", rng.integers(low, 100, (5, 7, 6)).astype(NAMES[name]))
        combiners = [lax.add, lax.mul, lax.max, lax.min, lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor]
        golden.case(f"{name} reduce", [x], exact(*reduces(name, combiners)))
    for name in FLOATS:
        x = golden.tensor(f"{name}.sum", rng.integers(-4, 5, (5, 7, 6)).astype(NAMES[name]))
        golden.case(f"{name} reduce", [x], exact(*reduces(name, [lax.add, lax.max, lax.min])))
        y = golden.tensor(f"{name}.fractions", rng.normal(size=(5, 7, 6)).astype(NAMES[name]))
        # XLA sums in another order; it may round 16-bit sums in between, ours are rounded once.
        free = [("16 roundings", f) for f in reduces(name, [lax.add])]
        golden.case(f"{name} sums", [y], free)
    p = golden.tensor("pred.sum", rng.integers(0, 2, (5, 7, 6)).astype(bool))
    golden.case("pred reduce", [p], exact(*reduces("pred", [lax.bitwise_and, lax.bitwise_or])))


def reduces(name: str, combiners: list[Callable[..., jax.Array]]) -> list[Callable[..., jax.Array]]:
    """Give each combiner over the first, the last two and all dimensions."""
    start = np.ones((), NAMES[name])
    dims = [(0,), (1, 2), (0, 1, 2)]
    return [lambda x, c=c, d=d: lax.reduce(x, start, c, d) for c in combiners for d in dims]


def products(golden: Golden, rng: np.random.Generator) -> None:
    """General dots with batch dimensions and two contracted ones, by operand and result types."""

    def contracted(a: Array, b: Array, result: str, dims: tuple[object, object]) -> jax.Array:
        return lax.dot_general(a, b, dims, preferred_element_type=NAMES[result])

    # [2,3,4,5] by [5,2,6,4]: batch 0/1, contract 3,2 / 0,3.
    general = (((3, 2), (0, 3)), ((0,), (1,)))
    kinds = [("s8", "s32"), ("u8", "u32"), ("s8", "s8"), ("s32", "s32"), ("s16", "s64")]
    for a, result in kinds:
        low = -128 if a[0] == "s" else 0
        x = golden.tensor(f"{a}{result}.lhs", rng.integers(low, 128, (2, 3, 4, 5)).astype(NAMES[a]))
        y = golden.tensor(f"{a}{result}.rhs", rng.integers(low, 128, (5, 2, 6, 4)).astype(NAMES[a]))
        golden.case(f"dot {a} {result}", [x, y], exact(lambda x, y, r=result: contracted(x, y, r, general)))
    halves = [("bf16", "bf16"), ("bf16", "f32"), ("f16", "f32"), ("f16", "f16")]
    for a, result in [("f32", "f32"), ("f64", "f64"), *halves]:
        for kind, allowed in [("whole", "exact"), ("fractions", "4 roundings")]:
            draw = (lambda s: rng.integers(-8, 9, s)) if kind == "whole" else (lambda s: rng.normal(size=s))
            x = golden.tensor(f"{a}{result}.lhs.{kind}", draw((2, 3, 4, 5)).astype(NAMES[a]))
            y = golden.tensor(f"{a}{result}.rhs.{kind}", draw((5, 2, 6, 4)).astype(NAMES[a]))
            golden.case(f"dot {a} {result} {kind}", [x, y],
                        [(allowed, lambda x, y, r=result: contracted(x, y, r, general))])  # fmt: skip


def main() -> None:
    """Compute and write everything."""
    golden, rng = Golden(), np.random.default_rng(20261130)
    integers(golden, rng)
    floats(golden, rng)
    functions(golden, rng)
    conversions(golden)
    movement(golden)
    reductions(golden, rng)
    products(golden, rng)
    path = pathlib.Path(__file__).parent / "golden" / "xla_cpu.json.gz"
    path.parent.mkdir(exist_ok=True)
    golden.write(path)


if __name__ == "__main__":
    main()
