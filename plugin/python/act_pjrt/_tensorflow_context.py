"""What TensorFlow has only for devices of its own, done for ACT: memory in use, compiled programs, DLPack.

The functions of TensorFlow's that do this are wrapped; every other device goes to them as before.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

# ``ACT:0``, ``/device:ACT:0`` and whole names; where a platform is asked for, its name alone.
_NAME = re.compile(r"(?:.*/device:|device:)?ACT(?::(\d+))?", re.IGNORECASE)

# Programs as TensorFlow makes them, before anything compiles them: the same for all devices of its bridge.
_UNOPTIMIZED = {"stablehlo", "stablehlo_serialized", "hlo", "hlo_no_metadata", "hlo_serialized"}
_HOST = "/job:localhost/replica:0/task:0/device:CPU:0"

# void take(data, size)
_TAKER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)


def install(loader: Path) -> None:
    """Wraps the functions; ``loader`` is the library that TensorFlow has opened."""
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context

    library = ctypes.CDLL(str(loader))
    library.act_tensorflow_memory.argtypes = [ctypes.c_int32, ctypes.POINTER(ctypes.c_uint64 * 2)]
    library.act_tensorflow_reset_peak.argtypes = [ctypes.c_int32]
    library.act_tensorflow_optimized_program.argtypes = [ctypes.c_char_p, ctypes.c_size_t, _TAKER]
    own = context.Context
    own.get_memory_info = _memory_info(library, own.get_memory_info)
    own.reset_memory_stats = _reset_memory(library, own.reset_memory_stats)
    own.get_compiler_ir = _compiler_ir(library, own.get_compiler_ir)
    # A copy in the host's memory: TensorFlow hands out no memory of devices that it does not know.
    for name in ("TFE_ToDlpackCapsule", "TFE_DlpackDevice"):
        setattr(pywrap_tfe, name, _of_host_copy(getattr(pywrap_tfe, name)))


def guard_compiled_functions_on_cpu() -> None:
    """Has compiled functions that are called on CPU fail, which end the process with TensorFlow 2.20.

    The flag that ACT needs sends them the way of its own functions there, on which that release reads what
    CPU does not have; it does so without act, too.
    """
    from tensorflow.python.eager import context
    from tensorflow.python.eager.polymorphic_function import concrete_function
    from tensorflow.python.framework import errors

    function = concrete_function.ConcreteFunction
    own = function._call_flat

    @functools.wraps(own)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        on_cpu = "device:CPU" in (context.context().device_name or "")
        if on_cpu and self.function_def.attr["_XlaMustCompile"].b:
            raise errors.UnimplementedError(
                None,
                None,
                "act: with TensorFlow 2.20, compiled functions cannot run on CPU beside ACT. Leave out "
                "jit_compile=True there, or use TensorFlow 2.21.",
            )
        return own(self, *arguments, **named)

    function._call_flat = call


def _ordinal(name: str | None) -> int | None:
    """The number of an ACT device; None for any other device."""
    found = _NAME.fullmatch(name or "")
    return None if found is None else int(found[1] or 0)


def _memory_info(library: Any, own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def get_memory_info(self: Any, dev: str) -> Any:
        ordinal = _ordinal(dev)
        if ordinal is not None:
            self.ensure_initialized()
            usage = (ctypes.c_uint64 * 2)()
            if library.act_tensorflow_memory(ordinal, ctypes.byref(usage)):
                return {"current": usage[0], "peak": usage[1]}
        return own(self, dev)

    return get_memory_info


def _reset_memory(library: Any, own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def reset_memory_stats(self: Any, dev: str) -> None:
        ordinal = _ordinal(dev)
        if ordinal is not None:
            self.ensure_initialized()
            if library.act_tensorflow_reset_peak(ordinal):
                return
        own(self, dev)

    return reset_memory_stats


def _compiler_ir(library: Any, own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def get_compiler_ir(
        self: Any,
        device_name: str | None,
        platform_name: str | None,
        function_name: str,
        flat_args: Any,
        captured_inputs: Any,
        stage: str = "hlo",
    ) -> Any:
        def unoptimized(stage: str) -> Any:
            flat, captured = map(_on_host, flat_args), map(_on_host, captured_inputs)
            return own(self, _HOST, None, function_name, list(flat), list(captured), stage)

        if _ordinal(platform_name or device_name) is None:
            return own(self, device_name, platform_name, function_name, flat_args, captured_inputs, stage)
        if stage in _UNOPTIMIZED:
            return unoptimized(stage)
        module = _optimized(library, unoptimized("hlo_serialized"))
        if stage == "optimized_hlo":
            return _text(module).encode()
        if stage == "optimized_hlo_serialized":
            return module
        if stage == "optimized_hlo_proto_serialized":
            # HloProto { hlo_module: 1 }
            return b"\x0a" + _varint(len(module)) + module
        raise ValueError(f"act: there is no stage {stage} of a program for ACT")

    return get_compiler_ir


def _of_host_copy(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def function(tensor: Any) -> Any:
        is_elsewhere = _ordinal(getattr(tensor, "device", None)) is None
        return own(tensor if is_elsewhere else _on_host(tensor))

    return function


def _on_host(value: Any) -> Any:
    """A tensor, or a variable's handle, for a compilation on the host; a specification as it is."""
    import tensorflow as tf
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import gen_resource_variable_ops as resources

    if not isinstance(value, ops.EagerTensor):
        return value
    with tf.device(_HOST):
        if value.dtype != tf.resource:
            return tf.identity(value)
        if _ordinal(value.device) is None:
            return value
        (contents,) = value._handle_data.shape_and_type
        stand_in = tf.Variable(resources.read_variable_op(value, tf.as_dtype(contents.dtype)))
        # A handle keeps its variable only as long as the variable lives.
        stand_in.handle._act_variable = stand_in
        return stand_in.handle


def _optimized(library: Any, module: bytes) -> bytes:
    """The program that runs for an ``HloModuleProto``, as such a message."""
    taken: list[bytes] = []
    take = _TAKER(lambda data, size: taken.append(ctypes.string_at(data, size)))
    if library.act_tensorflow_optimized_program(module, len(module), take):
        raise ValueError(
            taken[0].decode("utf-8", "replace") if taken else "act: the program cannot be compiled"
        )
    return _first_field(taken[0])


def _text(module: bytes) -> str:
    from jaxlib import _hlo

    text: str = _hlo.HloModule.from_serialized_hlo_module_proto(module).to_string()
    return text


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])


def _first_field(message: bytes) -> bytes:
    """Field 1 of a protocol buffer that begins with it, as ``HloModuleProtoWithConfig`` does."""
    if message[:1] != b"\x0a":
        raise ValueError("act: a program of an unknown form")
    size = shift = 0
    for at in range(1, len(message)):
        size |= (message[at] & 127) << shift
        shift += 7
        if message[at] < 128:
            return message[at + 1 : at + 1 + size]
    raise ValueError("act: a program that is cut short")
