"""Cost analysis of programs before they are compiled (``jax.jit(f).lower(x).cost_analysis()``).

XLA counts from a module alone, but JAX asks it for built-in backends only; for act the built-in CPU client is
asked. Compiled programs need none of this: our library counts their costs.
"""

from __future__ import annotations

from typing import Any

from act_pjrt import _jaxlib_cpu, _library


def install() -> None:
    """Replaces JAX's method by one that serves act too."""
    from jax._src.interpreters import pxla
    from jaxlib import _jax

    original = pxla.MeshComputation.cost_analysis
    if getattr(original, "serves_act", False):
        return

    def cost_analysis(computation: Any) -> Any:
        backend = computation.compile_args["backend"]
        if not _library.is_act_version(getattr(backend, "platform_version", "")):
            return original(computation)
        return _jax.hlo_module_cost_analysis(_jaxlib_cpu.client(), computation.hlo().as_hlo_module())

    cost_analysis.serves_act = True  # type: ignore[attr-defined]
    pxla.MeshComputation.cost_analysis = cost_analysis
