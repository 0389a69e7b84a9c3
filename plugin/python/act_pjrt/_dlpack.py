"""Arrays of other libraries brought in by DLPack.

jaxlib imports host memory into a CPU client in a way that it offers to its built-in client only. For act the
array is taken up by a client of jaxlib's own, which is made when first needed, and put from there onto our
device, which shares memory that is aligned as XLA wants it.
"""

from __future__ import annotations

from typing import Any

from act_pjrt import _jaxlib_cpu, _library

# Bytes; what XLA's CPU backend demands of memory that it is given to keep.
_ALIGNMENT = 64


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
        import jax
        import numpy as np

        shared = False if copy is False else None
        host = np.asarray(original(capsule, _jaxlib_cpu.client().devices()[0], None, shared, *rest))
        if copy:
            host = host.copy()
        array = jax.device_put(host, device)
        if copy is False and host.size and array.unsafe_buffer_pointer() != host.ctypes.data:
            raise ValueError(
                "the source's memory cannot be shared with act, which takes it densely packed, row by row, "
                f"and aligned to {_ALIGNMENT} bytes. Set copy=True or copy=None to copy it."
            )
        return array

    dlpack_managed_tensor_to_buffer.serves_act = True  # type: ignore[attr-defined]
    _jax.dlpack_managed_tensor_to_buffer = dlpack_managed_tensor_to_buffer
