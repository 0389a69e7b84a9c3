"""Writes the compiled module of every program in programs.py: NAME.pb as XLA serializes it, NAME.txt as XLA
prints it (for the two that tests read).

    JAX_PLATFORMS=cpu python isa/hlo/tests/modules/dump.py
"""

import pathlib

import jax
from programs import PROGRAMS

HERE = pathlib.Path(__file__).parent
PRINTED = ("mlp", "softmax")

# Keep bare file names: a path would tell of the machine.
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
for name, (function, *arguments) in PROGRAMS.items():
    compiled = jax.jit(function).lower(*arguments).compile()
    (module,) = compiled.runtime_executable().hlo_modules()
    (HERE / f"{name}.pb").write_bytes(module.as_serialized_hlo_module_proto())
    if name in PRINTED:
        (HERE / f"{name}.txt").write_text(module.to_string())
