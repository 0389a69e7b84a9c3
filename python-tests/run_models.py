"""``run_models.py FOLDER [NAME...]`` runs models of models.registry, each one's results into ``NAME.pickle``.

Runs in a process of its own, because JAX takes its platform once per process. With ``ACT_DUMP=1`` this is how
the corpus of regions is captured: the dump's ``modules`` go to ``act corpus capture``.
"""

from __future__ import annotations

import pickle
import sys
import traceback
from pathlib import Path

import jax
import numpy as np
from models.registry import VARIANTS


def run(folder: Path, names: list[str]) -> None:
    """Writes a list of arrays, or an error's text, per model; all models when none is named."""
    for name in names or list(VARIANTS):
        variant = VARIANTS[name]
        print(name, flush=True)
        result: list[np.ndarray] | str
        try:
            outputs = jax.jit(variant.function)(*variant.arguments())
            result = [np.asarray(leaf) for leaf in jax.tree.leaves(outputs)]
        except Exception:
            result = traceback.format_exc()
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2:])
