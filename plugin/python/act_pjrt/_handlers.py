"""Hands jaxlib's FFI handlers (LAPACK, sparse, those a user registers) to the XLA library we run on.

That library has a registry of its own, apart from jaxlib's.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from act_pjrt import _library

# Served by act_pjrt._callbacks instead: jaxlib's own handlers reach into jaxlib's client.
_PYTHON_CALLBACKS = frozenset(
    {
        "xla_ffi_python_cpu_callback",
        "xla_ffi_partitioned_python_cpu_callback",
        "xla_buffer_python_cpu_callback",
    }
)

_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype = ctypes.c_char_p
_capsule_name.argtypes = [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

_pushed: set[str] = set()
_lock = threading.Lock()


def _push(name: str, capsule: Any) -> None:
    with _lock:
        if name in _pushed:
            return
        handler = _capsule_pointer(capsule, _capsule_name(capsule))
        error = _library.take_string(_library.load().act_ffi_register(name.encode(), handler))
        if error is not None:
            raise RuntimeError(f"act: the FFI handler {name} could not be registered: {error}")
        _pushed.add(name)


def push_jaxlib_handlers() -> None:
    """Pushes the handlers that jaxlib ships. Raises RuntimeError where the library refuses one."""
    from jaxlib.cpu import _lapack, _sparse

    _lapack.initialize()
    for name, capsule in _lapack.registrations().items():
        # The others have the calling convention that came before typed FFI.
        if name.endswith("_ffi"):
            _push(name, capsule)
    for name, capsule in _sparse.registrations().items():
        _push(name, capsule)


def push_registered_handlers() -> None:
    """Pushes what has been registered in jaxlib since the last call, a user's own FFI targets included.

    Handlers with state (an instantiate stage) cannot be carried through the PJRT interface; a program that
    calls one fails with XLA's "no handler registered".
    """
    from jaxlib import xla_client

    # jaxlib keeps registrations back until its own CPU client is made; from now on it lists them at once.
    xla_client.register_custom_call_handler("cpu", xla_client._xla.register_custom_call_target)
    for name, stages in xla_client.custom_call_targets("Host").items():
        if name in _PYTHON_CALLBACKS or name in _pushed or not isinstance(stages, dict):
            continue
        if set(stages) == {"execute"}:
            _push(name, stages["execute"])
