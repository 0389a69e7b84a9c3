"""act-pjrt: run JAX programs on tensor accelerators described in TAIDL.

Set ``JAX_PLATFORMS=act`` and choose a description with ``ACT_TARGET``; programs need no change. This module
only answers questions about what happened; importing it loads neither JAX nor the native library.
"""

from __future__ import annotations

from typing import Any

from act_pjrt import _library

__all__ = ["is_act", "last_run", "library_path", "regions"]


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
    bytes moved, modelled cycles, allocator) or the reason for which it stayed on the host.
    """
    found: list[dict[str, Any]] = _library.query("act_regions_json")
    return found


def last_run() -> dict[str, Any] | None:
    """Counters of the most recent execution that reached a device, or None when there was none."""
    counters: dict[str, Any] | None = _library.query("act_last_run_json")
    return counters
