"""``python -m act_pjrt.report SCRIPT [ARGUMENT...]``: runs a script unchanged, then prints what ran where."""

from __future__ import annotations

import runpy
import sys
from typing import Any

import act_pjrt


def _field(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}:{_field(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return "x".join(_field(inner) for inner in value)
    return str(value)


def table(regions: list[dict[str, Any]]) -> str:
    """One line per region: its fields as ``key=value``, those without a value left out."""
    lines = [
        "  ".join(f"{key}={_field(value)}" for key, value in region.items() if value not in (None, {}, []))
        for region in regions
    ]
    return "\n".join(lines) if lines else "no region was offered to a device: everything ran on the host"


def main() -> None:
    """Runs the script named on the command line under its own name, as ``python SCRIPT`` would."""
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m act_pjrt.report SCRIPT [ARGUMENT...]")
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    print("\nWhat ran where:")
    print(table(act_pjrt.regions()))


if __name__ == "__main__":
    main()
