"""The CPU client that jaxlib has built in, for what it offers to no other. It compiles nothing."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def client() -> Any:
    """The client, made when first asked for; JAX does not see it."""
    from jaxlib import xla_client

    return xla_client.make_cpu_client()
