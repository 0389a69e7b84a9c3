"""A function of the user as the cost model of all compilers in this process. Knows nothing of JAX."""

from __future__ import annotations

import ctypes
import dis
import hashlib
import json
import math
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

from act_pjrt import _library

CostFunction = Callable[[dict[str, Any]], float]

# What the library holds: the C function lives as long as it may be called.
_installed: list[Any] = []

# What tells the function that is set from others; None: there is none.
_current: str | None = None


def current() -> str | None:
    """What tells the cost model of the user from others, while there is one."""
    return _current


def fingerprint_of(function: CostFunction) -> str:
    """What tells a function from others: its code, defaults, and what it reads of its surroundings, which are
    plain values, modules, classes and other functions, these in the same way.

    Raises ValueError where that is not known, as for objects that are called and for builtins.
    """
    if not isinstance(function, types.FunctionType):
        raise ValueError(f"what {function!r} does is not known: give fingerprint=")
    known = repr((sys.version, _function(function, [])))
    return hashlib.sha256(known.encode()).hexdigest()


def _function(function: types.FunctionType, seen: list[types.FunctionType]) -> tuple[Any, ...]:
    """All that a function's results depend on besides its arguments; `seen` are the functions looked at."""
    if any(function is before for before in seen):
        return ("function", next(k for k, before in enumerate(seen) if function is before))
    seen.append(function)
    outside = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    surroundings = {name: cell.cell_contents for name, cell in outside.items()}
    for name in sorted(_globals_read(function.__code__)):
        if name in function.__globals__:
            surroundings[name] = function.__globals__[name]
    surroundings["defaults"] = (function.__defaults__, function.__kwdefaults__)
    return (
        _code(function.__code__),
        [(name, _surrounding(name, value, seen)) for name, value in surroundings.items()],
    )


def _surrounding(name: str, value: Any, seen: list[types.FunctionType]) -> Any:
    if isinstance(value, types.FunctionType):
        return _function(value, seen)
    if isinstance(value, types.ModuleType):
        return ("module", value.__name__, str(getattr(value, "__version__", "")))
    if isinstance(value, (type, types.BuiltinFunctionType)) and value.__module__ != "__main__":
        return ("known by name", value.__module__, value.__qualname__)
    if _plain(value):
        return ("value", repr(value))
    raise ValueError(f"the function reads {name}, which is more than plain values: give fingerprint=")


def _globals_read(code: types.CodeType) -> set[str]:
    """Names that the code, and what is defined in it, looks up outside of all functions."""
    names = {
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return names.union(*map(_globals_read, inner))


def _code(code: types.CodeType) -> tuple[Any, ...]:
    """Code without names of files and numbers of lines."""
    constants = [_code(c) if isinstance(c, types.CodeType) else _constant(c) for c in code.co_consts]
    return (code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants)


def _constant(value: Any) -> str:
    # The order of a set differs from process to process.
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def _plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_plain, value))
    if isinstance(value, dict):
        return all(_plain(k) and _plain(v) for k, v in value.items())
    return value is None or isinstance(value, (bool, int, float, str, bytes))


def install(function: CostFunction, fingerprint: str | None) -> None:
    """Makes `function` the cost model."""
    global _current
    name = fingerprint_of(function) if fingerprint is None else fingerprint

    def serve(text: int, length: int, cost: Any, error: int, capacity: int) -> int:
        try:
            value = function(json.loads(ctypes.string_at(text, length)))
            if isinstance(value, bool) or not math.isfinite(value) or value < 0:
                raise ValueError(f"a cost is a finite number from 0 on, not {value!r}")
            cost[0] = float(value)
            return 0
        except BaseException as fault:
            last = traceback.extract_tb(fault.__traceback__)[-1]
            said = f"{type(fault).__name__}: {fault} ({last.filename}:{last.lineno})"
            encoded = said.encode("utf-8", "replace").replace(b"\0", b" ")[: capacity - 1] + b"\0"
            ctypes.memmove(error, encoded, len(encoded))
            return 1

    callback = _library.COST_CALLBACK(serve)
    # Compilations under way may still call the one before.
    _installed.append(callback)
    _library.take_string(_library.load().act_cost_model_set(callback, name.encode()))
    _current = name


def remove() -> None:
    """Goes back to the models of the descriptions."""
    global _current
    nothing = _library.COST_CALLBACK()
    _library.take_string(_library.load().act_cost_model_set(nothing, b""))
    _current = None
