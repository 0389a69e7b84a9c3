"""``run_programs.py FOLDER DEVICES`` runs the programs of programs.py, each one's results into a file.

Runs in a process of its own, because JAX takes its platform once per process. A program that kills the
process leaves no file.
"""

from __future__ import annotations

import pickle
import sys
import traceback
from pathlib import Path

import jax
import numpy as np
from programs import PROGRAMS


def run(folder: Path, devices: int) -> None:
    """Writes ``NAME.pickle`` for programs that want this many devices: a list of arrays, or an error text."""
    if jax.device_count() != devices:
        raise SystemExit(f"expected {devices} devices, found {jax.devices()}")
    for name, program in PROGRAMS.items():
        if program.devices != devices:
            continue
        print(name, flush=True)
        result: list[np.ndarray] | str
        try:
            with jax.enable_x64(program.x64):
                result = [np.asarray(leaf) for leaf in jax.tree.leaves(program.run())]
        except Exception:
            result = traceback.format_exc()
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
