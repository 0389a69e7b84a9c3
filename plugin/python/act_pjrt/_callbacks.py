"""Python callbacks of JAX programs: pure_callback, io_callback, debug.print, debug.callback, buffer_callback.

JAX compiles each into a custom call whose attribute ``index`` counts into a list that jaxlib's own CPU client
carries along. The act client has no such list, so before a module is compiled for it every index is replaced
by a number of the registry here, and the library's handler calls back with that number.
"""

from __future__ import annotations

import ctypes
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from act_pjrt import _buffers, _handlers, _library

_VALUES = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")
_BUFFERS = "xla_buffer_python_cpu_callback"

# Above every index that JAX assigns, so that a module which is compiled twice is rewritten once.
_FIRST = 1 << 32


class ExecutionContext:
    """What a ``buffer_callback`` function is told about its execution; a CPU client has no stream."""

    @property
    def stage(self) -> Any:
        """Callbacks run at one stage only."""
        from jax.experimental.buffer_callback import ExecutionStage

        return ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """Never there: raises the error that JAX's own CPU backend does."""
        from jax.errors import JaxRuntimeError

        raise JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available")


class _Registry:
    """Callbacks by number. XLA may run a program whose Python object is gone, so none is ever dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[tuple[Callable[..., Any], bool]] = []

    def add(self, function: Callable[..., Any], takes_buffers: bool) -> int:
        with self._lock:
            self._entries.append((function, takes_buffers))
            return _FIRST + len(self._entries) - 1

    def call(self, number: int, args: list[_library.Buffer], results: list[_library.Buffer]) -> None:
        if not 0 <= number - _FIRST < len(self._entries):
            raise LookupError(
                f"no Python callback has the number {number}: was this program compiled elsewhere?"
            )
        function, takes_buffers = self._entries[number - _FIRST]
        if takes_buffers:
            lent = [_buffers.Lent(arg, writeable=False) for arg in args]
            lent += [_buffers.Lent(result, writeable=True) for result in results]
            function(ExecutionContext(), *lent)
            for buffer in lent:
                buffer.give_back()
            return
        inputs = [None if arg.element_type == _buffers.TOKEN else _buffers.read(arg) for arg in args]
        for result, value in zip(results, function(*inputs) or (), strict=False):
            if result.element_type != _buffers.TOKEN:
                _buffers.write(result, value)


_registry = _Registry()


def _serve(
    number: int, n_args: int, args: Any, n_results: int, results: Any, error: int, capacity: int
) -> int:
    try:
        _registry.call(number, args[:n_args], results[:n_results])
        return 0
    # Nothing may unwind into native code: KeyboardInterrupt and SystemExit are reported like the rest.
    except BaseException:
        text = "CpuCallback error calling callback: " + traceback.format_exc()
        message = text.encode()[: capacity - 1] + b"\0"
        ctypes.memmove(error, message, len(message))
        return 1


# Kept for as long as the library may call it.
_serve_pointer = _library.PYTHON_CALLBACK(_serve)


def _operations(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from _operations(inner.operation)


def _number_callbacks(module: Any, host_callbacks: Sequence[Callable[..., Any]]) -> None:
    """Replaces every callback's index into ``host_callbacks`` by a number of the registry."""
    from jax._src.lib.mlir import ir

    numbers: dict[tuple[int, bool], int] = {}
    with module.context, ir.Location.unknown():
        for operation in _operations(module.operation):
            if operation.name != "stablehlo.custom_call":
                continue
            target = ir.StringAttr(operation.attributes["call_target_name"]).value
            if target not in _VALUES and target != _BUFFERS:
                continue
            for key in ("backend_config", "mhlo.backend_config"):
                if key not in operation.attributes or not isinstance(operation.attributes[key], ir.DictAttr):
                    continue
                config = {entry.name: entry.attr for entry in ir.DictAttr(operation.attributes[key])}
                index = ir.IntegerAttr(config["index"])
                if index.value >= _FIRST:
                    continue
                entry = (index.value, target == _BUFFERS)
                if entry not in numbers:
                    numbers[entry] = _registry.add(host_callbacks[index.value], takes_buffers=entry[1])
                config["index"] = ir.IntegerAttr.get(index.type, numbers[entry])
                operation.attributes[key] = ir.DictAttr.get(config)


def install() -> None:
    """Gives the library its way into Python and has modules compiled for act prepared as said above."""
    from jax._src import compiler

    error = _library.take_string(_library.load().act_python_callback_set(_serve_pointer))
    if error is not None:
        raise RuntimeError(f"act: Python callbacks cannot be served: {error}")
    original = compiler.backend_compile_and_load
    if getattr(original, "serves_act", False):
        return

    def backend_compile_and_load(
        backend: Any, module: Any, executable_devices: Any, options: Any, host_callbacks: Sequence[Any]
    ) -> Any:
        if _library.is_act_version(getattr(backend, "platform_version", "")):
            _handlers.push_registered_handlers()
            if host_callbacks:
                _number_callbacks(module, host_callbacks)
        return original(backend, module, executable_devices, options, host_callbacks)

    backend_compile_and_load.serves_act = True  # type: ignore[attr-defined]
    compiler.backend_compile_and_load = backend_compile_and_load
