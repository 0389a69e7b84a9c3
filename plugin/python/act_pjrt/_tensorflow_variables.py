"""Operators on variables that XLA does not have, made of those that it has.

A variable lies in the device's memory, so an operator on it cannot run on the host as others do for which
ACT has no kernel. TensorFlow's functions that make such operators are wrapped; on variables in the host's
memory they do what they did.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def install() -> None:
    """Wraps the functions."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import gen_array_ops as arrays
    from tensorflow.python.ops import gen_resource_variable_ops as resources
    from tensorflow.python.ops import gen_state_ops as state

    def gathered(handle: Any, indices: Any, dtype: Any, name: Any = None) -> Any:
        return arrays.gather_nd(resources.read_variable_op(handle, dtype), indices, name=name)

    def scattered(operator: Callable[..., Any]) -> Callable[..., Any]:
        def update(handle: Any, indices: Any, updates: Any, name: Any = None, **_unused: Any) -> Any:
            dtype = dtypes.as_dtype(updates.dtype)
            value = operator(resources.read_variable_op(handle, dtype), indices, updates)
            return resources.assign_variable_op(handle, value, name=name)

        return update

    resources.resource_gather_nd = _on_act(resources.resource_gather_nd, gathered)
    for bound in ("min", "max"):
        name = f"resource_scatter_nd_{bound}"
        operator = getattr(arrays, f"tensor_scatter_{bound}")
        setattr(state, name, _on_act(getattr(state, name), scattered(operator)))


def _on_act(own: Callable[..., Any], composed: Callable[..., Any]) -> Callable[..., Any]:
    """``composed`` in place of a function of TensorFlow's, except on variables in the host's memory."""

    @functools.wraps(own)
    def function(handle: Any, *arguments: Any, **named: Any) -> Any:
        from tensorflow.python.framework import ops

        # In a function nobody knows yet where the variable will be.
        is_on_host = isinstance(handle, ops.EagerTensor) and ":CPU:" in handle.device
        return (own if is_on_host else composed)(handle, *arguments, **named)

    return function
