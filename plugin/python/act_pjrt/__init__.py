"""act-pjrt: run JAX programs on tensor accelerators described in TAIDL.

Set ``JAX_PLATFORMS=act`` and choose a description with ``ACT_TARGET``; programs need no change. This module
only answers questions about what happened; importing it loads neither JAX nor the native library.
"""

from __future__ import annotations

from typing import Any

from act_pjrt import _library

__all__ = ["executables", "is_act", "kernel_cache", "last_run", "library_path", "regions", "runs_of"]


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
