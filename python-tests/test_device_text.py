"""Text for devices: what ``act compile --emit device`` prints assembles, and trainium's computes its kernel.

Its calls run here on numpy, each as the reference of nki.isa defines it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import HERE
from test_cli import MATMUL, act

Array = np.ndarray[Any, Any]

KERNELS = HERE.parent / "plugin" / "filetests"


def device_text(target: str, text: str) -> str:
    process = act("compile", "-", "--target", target, "--emit", "device", text=text)
    assert process.returncode == 0, process.stderr
    return process.stdout


def assembled(triple: str, text: str, features: str = "") -> None:
    programs = [path for name in ("llvm-mc-22", "llvm-mc") if (path := shutil.which(name))]
    if not programs:
        pytest.skip("there is no assembler")
    command = [programs[0], f"--triple={triple}", f"--mattr={features}", "--filetype=obj", "-o", "/dev/null"]
    process = subprocess.run(command, input=text, text=True, capture_output=True, timeout=60)
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("name", ["product", "product_transposed_right", "requantized_layer"])
@pytest.mark.parametrize("target", ["gemmini", "gemmini_plus"])
def test_gemmini_text_assembles(target: str, name: str) -> None:
    text = device_text(target, (KERNELS / f"{name}.hlo").read_text())
    assert ".insn r 0x7b, 3, " in text
    assembled("riscv64", text, "+m")


@pytest.mark.parametrize("target", ["amx", "x86"])
def test_x86_text_assembles(target: str) -> None:
    text = device_text(target, MATMUL.format(m=16, k=8, n=16).replace("s8[", "f32[").replace("s32[", "f32["))
    assert "vmulps" in text or "vfmadd231ps" in text
    assembled("x86_64", text)


def test_a_target_without_encodings_says_what_to_write() -> None:
    process = act("compile", KERNELS / "attention.hlo", "--target", "h_qkv", "--emit", "device")
    assert process.returncode == 1
    assert "has no encoding; give it one in its description, such as `encode call" in process.stderr


def test_the_dump_has_the_text(tmp_path: Path) -> None:
    text = MATMUL.format(m=16, k=16, n=16)
    process = act("compile", "-", "--target", "gemmini", text=text, ACT_DUMP="1", ACT_DUMP_DIR=str(tmp_path))
    assert process.returncode == 0, process.stderr
    (dumped,) = tmp_path.glob("*/device.txt")
    assert dumped.read_text() == device_text("gemmini", text)
    process = act(
        "compile",
        KERNELS / "attention.hlo",
        "--target",
        "h_qkv",
        ACT_DUMP="1",
        ACT_DUMP_DIR=str(tmp_path / "none"),
    )
    assert process.returncode == 0, process.stderr
    assert not list((tmp_path / "none").glob("*/device.txt"))


class Segment:
    """A tensor of bytes in main memory."""

    def __init__(self, contents: bytes) -> None:
        self.memory = np.frombuffer(contents, np.uint8).copy()

    def ap(self, pattern: list[list[int]], offset: int, dtype: Any) -> Array:
        elements = self.memory.view(dtype)
        strides = [step * elements.itemsize for step, _ in pattern]
        counts = [count for _, count in pattern]
        last = offset + sum(step * (count - 1) for step, count in pattern)
        assert 0 <= offset <= last < elements.size
        return np.lib.stride_tricks.as_strided(elements[offset:], counts, strides)


def nki() -> dict[str, ModuleType]:
    """The modules nki, nki.language and nki.isa, as far as the texts here need them."""
    language, isa = ModuleType("nki.language"), ModuleType("nki.isa")
    for name in ("float32", "float16", "int32", "int8", "uint8", "add", "subtract", "multiply", "maximum"):
        setattr(language, name, getattr(np, name))
    language.bfloat16 = ml_dtypes.bfloat16  # type: ignore[attr-defined]
    language.sbuf, language.psum = "sbuf", "psum"  # type: ignore[attr-defined]
    language.exp = np.exp  # type: ignore[attr-defined]
    language.relu = lambda x: np.maximum(x, 0)  # type: ignore[attr-defined]
    language.ds = lambda start, size: slice(start, start + size)  # type: ignore[attr-defined]
    language.sequential_range = range  # type: ignore[attr-defined]
    language.shared_identity_matrix = lambda n, dtype: np.eye(n, dtype=dtype)  # type: ignore[attr-defined]

    def ndarray(shape: tuple[int, ...], dtype: Any, buffer: str) -> Array:
        assert buffer in {"sbuf", "psum"}
        return np.full(shape, 99, dtype)

    def store(dst: Array, value: Any) -> None:
        value = np.asarray(value)
        assert value.shape in ((), dst.shape)
        dst[...] = value.astype(dst.dtype)

    def dma_copy(dst: Array, src: Array) -> None:
        assert dst.dtype == src.dtype
        store(dst, src)

    def nc_matmul(dst: Array, stationary: Array, moving: Array, accumulate: bool) -> None:
        wide = stationary.astype(np.float32).T @ moving.astype(np.float32)
        store(dst, dst + wide if accumulate else wide)

    def tensor_scalar(
        dst: Array,
        data: Array,
        op0: Any,
        operand0: Any,
        reverse0: bool = False,
        op1: Any = None,
        operand1: Any = None,
        engine: Any = None,
    ) -> None:
        first = op0(operand0, data) if reverse0 else op0(data, operand0)
        store(dst, op1(first, operand1) if op1 else first)

    def activation(dst: Array, op: Any, data: Array, bias: Any = 0, scale: float = 1) -> None:
        store(dst, op(data * np.float32(scale) + bias))

    language.ndarray = ndarray  # type: ignore[attr-defined]
    isa.engine = ModuleType("engine")  # type: ignore[attr-defined]
    for name in ("tensor", "vector", "scalar", "gpsimd"):
        setattr(isa.engine, name, name)
    isa.dma_copy, isa.nc_matmul = dma_copy, nc_matmul  # type: ignore[attr-defined]
    isa.tensor_scalar, isa.activation = tensor_scalar, activation  # type: ignore[attr-defined]
    isa.dma_transpose = lambda dst, src: dma_copy(dst, src.T)  # type: ignore[attr-defined]
    isa.nc_transpose = lambda dst, data, engine: store(dst, data.T)  # type: ignore[attr-defined]
    isa.tensor_copy = lambda dst, src, engine: store(dst, src)  # type: ignore[attr-defined]
    isa.memset = lambda dst, value, engine: store(dst, value)  # type: ignore[attr-defined]
    isa.tensor_tensor = lambda dst, data1, data2, op, engine: store(  # type: ignore[attr-defined]
        dst, op(data1, data2)
    )
    root = ModuleType("nki")
    root.language, root.isa = language, isa  # type: ignore[attr-defined]
    return {"nki": root, "nki.language": language, "nki.isa": isa}


LAYER = """HloModule layer
ENTRY main {{
  a = {elem}[{m},{k}] parameter(0)
  b = {elem}[{k},{n}] parameter(1)
  product = f32[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  half = f32[] constant(0.5)
  halves = f32[{m},{n}] broadcast(half), dimensions={{}}
  scaled = f32[{m},{n}] multiply(product, halves)
  zero = f32[] constant(0)
  zeros = f32[{m},{n}] broadcast(zero), dimensions={{}}
  ROOT r = f32[{m},{n}] maximum(scaled, zeros)
}}
"""


@pytest.mark.parametrize(
    ("elem", "m", "k", "n"),
    [("f32", 300, 256, 512), ("bf16", 256, 512, 640), ("f16", 5, 3, 7), ("f32", 1, 130, 513)],
)
def test_trainium_text_computes_the_layer(
    elem: str, m: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = device_text("trainium", LAYER.format(elem=elem, m=m, k=k, n=n))
    element = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}[elem]
    random = np.random.default_rng(5)
    # Whole numbers: no sum is rounded.
    left, right = (random.integers(-4, 5, shape).astype(element) for shape in ((m, k), (k, n)))
    segments = {
        "operand0": Segment(left.tobytes()),
        "operand1": Segment(right.tobytes()),
        "result0": Segment(bytes(4 * m * n)),
    }
    for name, module in nki().items():
        monkeypatch.setitem(sys.modules, name, module)
    exec(compile(text, "kernel", "exec"), segments)
    got = segments["result0"].memory.view(np.float32).reshape(m, n)
    expected = np.maximum(left.astype(np.float32) @ right.astype(np.float32) * np.float32(0.5), 0)
    np.testing.assert_array_equal(got, expected)
