"""``python -m act_pjrt._taidl_import FILE.py``: runs a description written for the released tools, without an
edit, and prints the text form of every accelerator that it makes, as JSON. Serves ``act isa import``.
"""

from __future__ import annotations

import contextlib
import json
import runpy
import sys
import types
from pathlib import Path
from typing import Any

from act_pjrt import taidl


def _generate(accelerator: Any, *_: Any, **__: Any) -> None:
    """Stands for the generators of the released tools; act has its own."""


def _modules() -> dict[str, types.ModuleType]:
    """The modules that descriptions import, by every name in use."""
    language = ("taidl", "taidl.accelerator", "taidl.instruction", "taidl.data_model", "act.taidl")
    generators = ("act.generators", "act.generator", "taidl_to", "act_backend")
    modules = {name: types.ModuleType(name) for name in ("act", *language, *generators)}
    for name, module in modules.items():
        if name not in generators:
            vars(module).update({name: getattr(taidl, name) for name in taidl.__all__})
        if name not in language:
            vars(module).update(generate_oracle=_generate, generate_backend=_generate)
        # A package, so that submodules may be imported from it.
        module.__path__ = []
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    return modules


def main() -> None:
    """Prints ``[{"name": .., "text": ..}, ..]``; what the file itself prints goes to standard error."""
    file = Path(sys.argv[1]).resolve()
    sys.argv = [str(file)]
    sys.path[0] = str(file.parent)
    sys.modules.update(_modules())
    with contextlib.redirect_stdout(sys.stderr):
        try:
            runpy.run_path(str(file), run_name="__main__")
        except SystemExit as end:
            # A script may end itself when it is done; anything but 0 is a failure, as in Python.
            if end.code not in (None, 0):
                reason = f"it ended with status {end.code}" if isinstance(end.code, int) else str(end.code)
                print(reason, file=sys.stderr)
                sys.exit(1)
    print(json.dumps([{"name": made.name, "text": made.raw_taidl()} for made in taidl.created]))


if __name__ == "__main__":
    main()
