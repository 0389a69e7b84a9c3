"""``run_tensorflow_programs.py FILE DEVICE [NAME...]`` runs tensorflow_programs.py on devices of that type.

Runs in a process of its own, once on stock TensorFlow and once with act. The file is written after every
program, so that one which kills the process is the first that is missing.
"""

from __future__ import annotations

import pickle
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_programs import PROGRAMS


def arrays(result: Any) -> list[np.ndarray[Any, Any]]:
    """The leaves of a result."""
    return [np.asarray(leaf) for leaf in tf.nest.flatten(result)]


def run(file: Path, device: str, chosen: list[str]) -> None:
    """Writes each program's tolerance, and its arrays or an error text."""
    if not tf.constant(1.0).device.endswith(f"device:{device}:0"):
        raise SystemExit(f"expected {device}, found {tf.config.list_physical_devices()}")
    results: dict[str, tuple[float, list[np.ndarray[Any, Any]] | str]] = {}
    for name, program in PROGRAMS.items():
        if chosen and name not in chosen:
            continue
        print(name, flush=True)
        try:
            results[name] = (program.tolerance, arrays(program.run()))
        except Exception:
            results[name] = (program.tolerance, traceback.format_exc())
        file.write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
