"""The native library: where it is, its C functions, and where it finds OR-Tools and Z3.

Knows nothing of JAX.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

_LIBRARY = "libact_pjrt.so"

# Python packages whose shared libraries the native side opens by path when it first needs them.
_ENGINES = {
    "ACT_ORTOOLS_LIB": ("ortools", ".libs/libortools.so.9"),
    "ACT_Z3_LIB": ("z3", "lib/libz3.so"),
}


class Buffer(ctypes.Structure):
    """``act_buffer``: one operand or result of a Python callback."""

    _fields_ = [
        ("element_type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
    ]


# int32 callback(index, n_args, args, n_results, results, error, error_capacity): 0, or an error text written.
PYTHON_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_uint64,
    ctypes.c_size_t,
    ctypes.POINTER(Buffer),
    ctypes.c_size_t,
    ctypes.POINTER(Buffer),
    ctypes.c_void_p,
    ctypes.c_size_t,
)


# int32 callback(program, length, cost, error, error_capacity): 0, or an error text written.
COST_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_double),
    ctypes.c_void_p,
    ctypes.c_size_t,
)


def path() -> Path:
    """The library of this installation."""
    return Path(__file__).resolve().parent / _LIBRARY


def is_act_version(platform_version: str) -> bool:
    """Whether a PJRT client with this platform version is ours."""
    # JAX puts a line of its own before what the library says.
    return "act-pjrt" in platform_version


def export_engine_paths() -> None:
    """Tells the native side by environment variables where the engines are. Imports none of them."""
    for variable, (package, file) in _ENGINES.items():
        if variable in os.environ:
            continue
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            candidate = Path(folder) / file
            if candidate.is_file():
                os.environ[variable] = str(candidate)


@functools.cache
def load() -> ctypes.CDLL:
    """Opens the library (once) and declares the C functions that this package calls."""
    export_engine_paths()
    library = ctypes.CDLL(str(path()))
    # Strings come back as plain pointers, so that they can be returned to act_string_free.
    library.act_ffi_register.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    library.act_ffi_register.restype = ctypes.c_void_p
    library.act_python_callback_set.argtypes = [PYTHON_CALLBACK]
    library.act_python_callback_set.restype = ctypes.c_void_p
    library.act_cost_model_set.argtypes = [COST_CALLBACK, ctypes.c_char_p]
    library.act_cost_model_set.restype = ctypes.c_void_p
    library.act_regions_json.restype = ctypes.c_void_p
    library.act_last_run_json.restype = ctypes.c_void_p
    library.act_executables_json.restype = ctypes.c_void_p
    library.act_kernel_cache_json.restype = ctypes.c_void_p
    library.act_taidl_check_block.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.act_taidl_check_block.restype = ctypes.c_void_p
    library.act_taidl_complete.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.act_taidl_complete.restype = ctypes.c_void_p
    library.act_string_free.argtypes = [ctypes.c_void_p]
    library.act_string_free.restype = None
    return library


def take_string(address: int | None) -> str | None:
    """Copies a string that the library returned and gives its memory back; None for a null pointer."""
    if not address:
        return None
    try:
        return ctypes.string_at(address).decode("utf-8", "replace")
    finally:
        load().act_string_free(address)


def query(function: str) -> Any:
    """Calls a function that answers in JSON."""
    text = take_string(getattr(load(), function)())
    return None if text is None else json.loads(text)
