"""XLA FFI buffers as numpy arrays, and back. In XLA's memory, types narrower than a byte are packed."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import ml_dtypes
import numpy as np

from act_pjrt._library import Buffer

Array = np.ndarray[Any, np.dtype[Any]]

# XLA_FFI_DataType, from jaxlib's xla/ffi/api/c_api.h.
TOKEN = 17
_DTYPES: dict[int, np.dtype[Any]] = {
    number: np.dtype(name if hasattr(np, name) else getattr(ml_dtypes, name))
    for number, name in {
        1: "bool_",
        2: "int8",
        3: "int16",
        4: "int32",
        5: "int64",
        6: "uint8",
        7: "uint16",
        8: "uint32",
        9: "uint64",
        10: "float16",
        11: "float32",
        12: "float64",
        15: "complex64",
        16: "bfloat16",
        18: "complex128",
        19: "float8_e5m2",
        20: "float8_e4m3fn",
        21: "int4",
        22: "uint4",
        23: "float8_e4m3b11fnuz",
        24: "float8_e5m2fnuz",
        25: "float8_e4m3fnuz",
        26: "int2",
        27: "uint2",
        28: "float8_e4m3",
        29: "float8_e3m4",
        32: "float4_e2m1fn",
        33: "float8_e8m0fnu",
    }.items()
}
_BITS = {21: 4, 22: 4, 26: 2, 27: 2, 32: 4}
_SIGNED = {21, 26}


def dtype(buffer: Buffer) -> np.dtype[Any]:
    """The numpy type of a buffer's elements; TypeError where there is none."""
    found = _DTYPES.get(buffer.element_type)
    if found is None:
        raise TypeError(f"XLA element type {buffer.element_type} has no numpy counterpart")
    return found


def shape(buffer: Buffer) -> tuple[int, ...]:
    """The dimensions of a buffer."""
    return tuple(buffer.dims[axis] for axis in range(buffer.rank))


def _memory(buffer: Buffer, size: int) -> Array:
    if size == 0:
        return np.zeros(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(buffer.data))


def view(buffer: Buffer) -> Array:
    """An array over the buffer's own memory, valid as long as the call that the buffer came with."""
    if buffer.element_type in _BITS:
        raise TypeError(f"{dtype(buffer)} is packed in memory; there is no numpy view of it")
    dims = shape(buffer)
    return _memory(buffer, math.prod(dims) * dtype(buffer).itemsize).view(dtype(buffer)).reshape(dims)


def read(buffer: Buffer) -> Array:
    """A copy of the buffer. A view would not do: XLA reuses the memory while callers still hold the array."""
    bits = _BITS.get(buffer.element_type)
    if bits is None:
        return view(buffer).copy()
    dims, per_byte = shape(buffer), 8 // bits
    count = math.prod(dims)
    packed = _memory(buffer, -(-count // per_byte))
    lanes = [(packed >> (bits * lane)) & (2**bits - 1) for lane in range(per_byte)]
    raw = np.stack(lanes, -1).reshape(-1)[:count].astype(np.uint8)
    if buffer.element_type in _SIGNED:
        sign = 1 << (bits - 1)
        values = ((raw ^ sign).astype(np.int8) - sign).astype(dtype(buffer))
    else:
        # ml_dtypes keeps one element per byte, its bits in the low end.
        values = raw.view(dtype(buffer))
    return values.reshape(dims)


def write(buffer: Buffer, value: Array) -> None:
    """Stores an array of the buffer's own shape and type into its memory."""
    if value.shape != shape(buffer) or value.dtype != dtype(buffer):
        raise ValueError(f"expected {dtype(buffer)}{shape(buffer)}, got {value.dtype}{value.shape}")
    contiguous = np.ascontiguousarray(value).reshape(-1)
    bits = _BITS.get(buffer.element_type)
    if bits is None:
        _memory(buffer, contiguous.nbytes)[...] = contiguous.view(np.uint8)
        return
    per_byte = 8 // bits
    raw = contiguous.view(np.uint8) & (2**bits - 1)
    lanes = np.concatenate([raw, np.zeros(-raw.size % per_byte, np.uint8)]).reshape(-1, per_byte)
    packed = np.zeros(len(lanes), np.uint8)
    for lane in range(per_byte):
        packed |= lanes[:, lane] << (bits * lane)
    _memory(buffer, packed.size)[...] = packed


class Lent:
    """A buffer as a ``buffer_callback`` function gets it: XLA's own memory, for the time of the call.

    Has what ``jax.experimental.buffer_callback.Buffer`` has on a CPU.
    """

    def __init__(self, buffer: Buffer, writeable: bool) -> None:
        self.shape = shape(buffer)
        self.dtype = dtype(buffer)
        self.ndim = len(self.shape)
        self.writeable = writeable
        # Packed elements are unpacked into a copy, and packed again in the end.
        self._packed = buffer if buffer.element_type in _BITS else None
        self._array = read(buffer) if self._packed else view(buffer)
        self._array.flags.writeable = writeable

    def give_back(self) -> None:
        """The call is over."""
        if self._packed and self.writeable:
            write(self._packed, self._array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The memory as an array; a copy only where asked for or where the type differs."""
        return np.array(self._array, dtype=dtype, copy=copy)

    def __dlpack__(self, **arguments: Any) -> Any:
        """The memory for other libraries."""
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        """A CPU."""
        return self._array.__dlpack_device__()
