"""A program's own FFI targets (jax.ffi) work on act as on JAX's CPU backend, whenever they are registered."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jax
import pytest
from conftest import python

HANDLER = """
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;

static ffi::Error Scale(float factor, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (factor == 0) return ffi::Error::InvalidArgument("factor is zero");
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = factor * x.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    scale, Scale,
    ffi::Ffi::Bind().Attr<float>("factor").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
"""

PROGRAM = """
import ctypes, sys, jax, jax.numpy as jnp, numpy as np
if {early}:
    jnp.arange(3) + 1
jax.ffi.register_ffi_target("scale", jax.ffi.pycapsule(ctypes.CDLL(sys.argv[1]).scale), platform="cpu")
x = jnp.arange(5.0)
scale = jax.ffi.ffi_call("scale", jax.ShapeDtypeStruct(x.shape, x.dtype))
print(jax.jit(lambda x: scale(x, factor=np.float32(2)) + 1)(x))
try:
    scale(x, factor=np.float32(0)).block_until_ready()
except jax.errors.JaxRuntimeError as error:
    print("factor is zero" in str(error))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The handler above, compiled against the headers that jaxlib ships."""
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "scale.cc").write_text(HANDLER)
    command = ["g++", "-std=c++17", "-shared", "-fPIC", "-O1", "-w", "-I", jax.ffi.include_dir()]
    subprocess.run([*command, "scale.cc", "-o", "scale.so"], cwd=folder, check=True, timeout=600)
    return folder / "scale.so"


@pytest.mark.parametrize("after_first_use", [False, True])
@pytest.mark.parametrize("platform", ["act", "cpu"])
def test_own_target(platform: str, after_first_use: bool, library: Path) -> None:
    process = python("-c", PROGRAM.format(early=after_first_use), library, platforms=platform)
    assert process.stdout == "[1. 3. 5. 7. 9.]\nTrue\n", process.stderr[-2000:]
