"""Arrays of other libraries brought in by DLPack.

jaxlib imports host memory into a CPU client in a way that it offers to its built-in client only. For act the
array is taken up by a client of jaxlib's own, which is made when first needed, and copied from there.
"""

from __future__ import annotations

import functools
from typing import Any

from act_pjrt import _library


@functools.cache
def _jaxlib_cpu_device() -> Any:
    from jaxlib import xla_client

    return xla_client.make_cpu_client().devices()[0]


def install() -> None:
    """Replaces jaxlib's import function by one that serves act's devices too."""
    from jaxlib import _jax

    original = _jax.dlpack_managed_tensor_to_buffer
    if getattr(original, "serves_act", False):
        return

    def dlpack_managed_tensor_to_buffer(
        capsule: Any, device: Any, stream: Any = None, copy: bool | None = None, *rest: Any
    ) -> Any:
        if not _library.is_act_version(getattr(device.client, "platform_version", "")):
            return original(capsule, device, stream, copy, *rest)
        if copy is False:
            raise ValueError("act can import a DLPack tensor only by copying it: set copy=True or copy=None")
        import jax
        import numpy as np

        imported = original(capsule, _jaxlib_cpu_device(), None, None, *rest)
        return jax.device_put(np.asarray(imported), device)

    dlpack_managed_tensor_to_buffer.serves_act = True  # type: ignore[attr-defined]
    _jax.dlpack_managed_tensor_to_buffer = dlpack_managed_tensor_to_buffer
