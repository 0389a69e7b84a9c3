"""act-pjrt: run JAX programs on tensor accelerators described in TAIDL.

Set ``JAX_PLATFORMS=act`` and choose a description with ``ACT_TARGET``; programs need no change. This module
only answers questions about what happened; importing it loads neither JAX nor the native library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from act_pjrt import _cost_model, _library

__all__ = [
    "executables",
    "is_act",
    "kernel_cache",
    "last_run",
    "library_path",
    "regions",
    "runs_of",
    "set_cost_model",
]


def library_path() -> str:
    """The file that holds the PJRT plugin, for clients other than JAX (``PJRT_NAMES_AND_LIBRARY_PATHS``)."""
    return str(_library.path())


def is_act(device: Any) -> bool:
    """Whether a JAX device belongs to act. Its ``platform`` says "cpu", so that string cannot tell."""
    version: str = getattr(device.client, "platform_version", "")
    return _library.is_act_version(version)


def regions() -> list[dict[str, Any]]:
    """Every region considered so far in this process, in the order of compilation.

    Each entry names the region and holds either what it was compiled to (target, tile, instruction counts,
    bytes moved, modelled cycles, allocator) or the reason for which it stayed on the host. Of programs that
    are gone the last 256 regions are kept.
    """
    found: list[dict[str, Any]] = _library.query("act_regions_json")
    return found


def last_run() -> dict[str, Any] | None:
    """Counters of the most recent execution that reached a device, or None when there was none.

    ``total`` sums up all kernels, ``kernels`` has each by its key, with the number of its ``runs``. Each
    holds ``instructions`` by name, ``bytes`` moved by source and destination memory, ``host_copy_bytes``,
    ``bytes_moved`` (all of them), modelled ``cycles`` and ``unit_cycles`` by queue or engine, and
    ``peak_bytes``, the most of each buffer that was in use.
    """
    counters: dict[str, Any] | None = _library.query("act_last_run_json")
    return counters


def executables() -> list[dict[str, Any]]:
    """Every compiled program that calls a device, in the order of compilation.

    Each entry has ``executable`` (its number), ``module``, ``fingerprint`` (once asked for), ``executions``
    and, over all of them, ``total`` and ``kernels`` as in :func:`last_run`. Of programs that are gone the
    last 64 are kept.
    """
    found: list[dict[str, Any]] = _library.query("act_executables_json")
    return found


def kernel_cache() -> dict[str, int]:
    """What became of this process's requests to the cache of compiled kernels on disk (``ACT_CACHE_DIR``).

    ``found``: regions that an earlier process has compiled, or found not to compile; ``missing``: those new
    to the cache; ``damaged``: entries that were of no use and were compiled anew.
    """
    counts: dict[str, int] = _library.query("act_kernel_cache_json")
    return counts


def runs_of(compiled: Any) -> dict[str, Any] | None:
    """The entry of :func:`executables` for a compiled function of JAX (``jax.jit(f).lower(x).compile()``).

    None when it calls no device.
    """
    wanted = compiled.runtime_executable().fingerprint
    text = wanted.decode() if isinstance(wanted, bytes) else wanted
    return next((entry for entry in reversed(executables()) if entry["fingerprint"] == text), None)


def set_cost_model(
    function: Callable[[dict[str, Any]], float] | None, *, fingerprint: str | None = None
) -> None:
    """Ranks code by a function of yours, in this process and from now on; None: as the description says.

    It is called with a program as plain data and returns its cost, a finite number from 0 on; the compiler
    keeps what costs least. A program is ``{"isa": name, "program": [part, ...]}`` with parts of four kinds:

    * an instruction: ``instr``, ``unit`` (or None), ``cost`` (as the description states it), ``attributes``
      by name, ``addresses`` by name, ``bytes_loaded`` from main memory and ``bytes_stored`` to it. An
      address is ``at``, and by a loop's number in ``steps`` what every round adds; in main memory it counts
      in ``segment``.
    * a loop: ``loop`` (its number), ``trip``, ``parallel``, ``body`` (a list of parts).
    * ``host_copy``: bytes that the host copies to pack an operand.
    * ``fence``.

    An exception in the function ends the compilation with an error that tells it. Kernels are kept under the
    function's ``fingerprint``, and so are programs in JAX's compilation cache: by default a hash of its code,
    and of the functions and plain values that it uses, as they are now. Give another one when it depends on
    more than that. Programs that this process has compiled already stay as they are until
    ``jax.clear_caches()``.
    """
    if function is None:
        _cost_model.remove()
    else:
        _cost_model.install(function, fingerprint)
