"""A function of the user as the cost model of all compilers in this process. Knows nothing of JAX."""

from __future__ import annotations

import ctypes
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


def fingerprint_of(function: CostFunction) -> str:
    """What tells a function from others: its code, defaults and the plain values that it has closed over.

    Raises ValueError where that is not known, as for objects that are called and for builtins.
    """
    if not isinstance(function, types.FunctionType):
        raise ValueError(f"what {function!r} does is not known: give fingerprint=")
    values = [cell.cell_contents for cell in function.__closure__ or ()]
    values += [function.__defaults__, function.__kwdefaults__]
    if not all(_plain(value) for value in values):
        raise ValueError(f"{function!r} holds more than plain values: give fingerprint=")
    known = repr((sys.version, _code(function.__code__), values))
    return hashlib.sha256(known.encode()).hexdigest()


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


def remove() -> None:
    """Goes back to the models of the descriptions."""
    nothing = _library.COST_CALLBACK()
    _library.take_string(_library.load().act_cost_model_set(nothing, b""))
