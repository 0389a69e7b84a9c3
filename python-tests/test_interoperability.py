"""Memory shared with other libraries: DLPack both ways, buffers lent to callbacks."""

from __future__ import annotations

import pytest
from conftest import python

# An array of 1,024 floats at an address that XLA takes as it is, and one beside it that it does not.
ARRAYS = """
import jax, jax.numpy as jnp, numpy as np
memory = np.zeros(4096 + 128, np.uint8)
start = -memory.ctypes.data % 64
aligned = memory[start:start + 4096].view(np.float32)
crooked = memory[start + 4:start + 4 + 4096].view(np.float32)
"""

SHARED = (
    ARRAYS
    + """
imported = jnp.from_dlpack(aligned, copy=False)
aligned[3] = 7
print(imported[3] == 7, imported.unsafe_buffer_pointer() == aligned.ctypes.data)
try:
    jnp.from_dlpack(crooked, copy=False)
except ValueError as error:
    print("aligned to 64 bytes" in str(error))
copied = jnp.from_dlpack(crooked)
crooked[5] = 9
print(copied[5] == 0)
print(jnp.from_dlpack(np.arange(6, dtype=np.int16).reshape(2, 3).T).tolist())
exported = np.from_dlpack(imported)
print(exported.ctypes.data == aligned.ctypes.data)
del imported, copied
aligned[0] = 1
print(exported[0] == 1)
"""
)


@pytest.mark.parametrize("platform", ["act", "cpu"])
def test_dlpack_shares_memory_that_is_aligned(platform: str) -> None:
    process = python("-c", SHARED, platforms=platform)
    assert process.stdout == "True True\nTrue\nTrue\n[[0, 3], [1, 4], [2, 5]]\nTrue\nTrue\n", process.stderr


def test_dlpack_copies_where_it_is_told_to() -> None:
    code = ARRAYS + "x = jnp.from_dlpack(aligned, copy=True); aligned[3] = 7; print(x[3])"
    assert python("-c", code, platforms="act").stdout == "0.0\n"


def test_dlpack_that_would_need_a_copy_says_so() -> None:
    """A transposed view is dense, but not as act takes it."""
    code = ARRAYS + "jnp.from_dlpack(aligned.reshape(32, 32).T, copy=False)"
    process = python("-c", code, platforms="act")
    assert process.returncode == 1
    assert "Set copy=True or copy=None" in process.stderr


LENT = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental.buffer_callback import ExecutionStage, buffer_callback

def double(context, out, x):
    try:
        context.stream
    except jax.errors.JaxRuntimeError as error:
        print("GPU context is not available" in str(error), context.stage == ExecutionStage.EXECUTE)
    print(x.shape, x.dtype, x.ndim, x.writeable, out.writeable, np.from_dlpack(x).sum())
    np.asarray(out)[...] = np.asarray(x) * 2

x = jnp.arange(6, dtype=jnp.int16).reshape(2, 3)
like = jax.ShapeDtypeStruct(x.shape, x.dtype)
print(buffer_callback(double, like)(x).tolist())

def increment(context, out, x):
    print(np.asarray(out).ctypes.data == np.asarray(x).ctypes.data)
    np.asarray(out)[...] += 1

# In place, on a copy of its argument.
print(buffer_callback(increment, like, input_output_aliases={0: 0})(x).tolist(), x.tolist())
"""


@pytest.mark.parametrize("platform", ["act", "cpu"])
def test_buffer_callbacks_get_buffers(platform: str) -> None:
    process = python("-c", LENT, platforms=platform)
    said = "True True\n(2, 3) int16 2 False True 15\n[[0, 2, 4], [6, 8, 10]]\n"
    assert process.stdout == said + "True\n[[1, 2, 3], [4, 5, 6]] [[0, 1, 2], [3, 4, 5]]\n", process.stderr


def test_buffer_callbacks_write_packed_elements() -> None:
    code = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental.buffer_callback import buffer_callback
def negate(context, out, x): np.asarray(out)[...] = -np.asarray(x)
x = jnp.array([-7, 0, 3, 5, 7], jnp.int4)
print(buffer_callback(negate, jax.ShapeDtypeStruct(x.shape, x.dtype))(x))
"""
    process = python("-c", code, platforms="act")
    assert process.stdout == "[7 0 -3 -5 -7]\n", process.stderr
