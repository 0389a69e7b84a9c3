"""``python -m act_pjrt.report SCRIPT [ARGUMENT...]``: runs a script unchanged, then prints what ran where."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import act_pjrt


def _origin(region: dict[str, Any]) -> str:
    """The line of the program that a region comes from, as far as XLA's metadata has it."""
    source = region.get("source") or {}
    if source.get("file"):
        return f"{Path(source['file']).name}:{source.get('line', 0)}"
    return str(source.get("op_name") or region.get("computation") or "?")


def _verification(region: dict[str, Any]) -> str:
    """What the checker says, where it was asked."""
    said = region.get("verification")
    if not said:
        return ""
    why = said.get("counterexample") or said.get("reason")
    return f"\n        {said.get('verdict')}" + (f": {why}" if why else "")


def _device(region: dict[str, Any]) -> str:
    summary = region.get("summary") or {}
    operators = " ".join(f"{name}*{count}" for name, count in (region.get("operators") or {}).items())
    instructions = " ".join(f"{name}*{count}" for name, count in (summary.get("instructions") or {}).items())
    return (
        f"{operators} -> {' '.join(region.get('results') or [])}\n"
        f"        {summary.get('target')}: {instructions}\n"
        f"        tile {'x'.join(map(str, summary.get('tile') or []))}, "
        f"{summary.get('modelled_cycles')} modelled cycles, "
        f"{summary.get('host_copy_bytes')} bytes copied by the host, "
        f"allocated by {' and '.join(summary.get('allocators') or [])}"
        f"{_verification(region)}"
    )


def table(regions: list[dict[str, Any]]) -> str:
    """What became of each region: its code in numbers, or why it stayed on the host."""
    if not regions:
        return "no region was offered to a device: everything ran on the host"
    lines = []
    for region in regions:
        where = region.get("where")
        said = _device(region) if where == "device" else f"{region.get('op')}: {region.get('refusal')}"
        lines.append(f"{where:7} {_origin(region)}  {said}")
    return "\n".join(lines)


def main() -> None:
    """Runs the script named on the command line under its own name, as ``python SCRIPT`` would."""
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m act_pjrt.report SCRIPT [ARGUMENT...]")
    sys.argv = sys.argv[1:]
    # As Python does: a script may import its neighbours.
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
    print("\nWhat ran where:")
    print(table(act_pjrt.regions()))


if __name__ == "__main__":
    main()
