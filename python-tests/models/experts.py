"""A mixture of experts: every expert is applied to every token, and a router weights them (dense form)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .data import weights

Params = dict[str, jax.Array]


def experts_params(name: str, width: int, hidden: int, experts: int, dtype: Any = jnp.float32) -> Params:
    return {
        "router": weights(f"{name}/router", width, experts, dtype=dtype),
        "up": jnp.stack([weights(f"{name}/up{e}", width, hidden, dtype=dtype) for e in range(experts)]),
        "down": jnp.stack([weights(f"{name}/down{e}", hidden, width, dtype=dtype) for e in range(experts)]),
    }


def mixture(p: Params, x: jax.Array) -> jax.Array:
    """The two best experts of every token, by a mask over all of them."""
    logits = (x @ p["router"]).astype(jnp.float32)
    second = jnp.sort(logits, -1)[:, -2:-1]
    gates = jax.nn.softmax(jnp.where(logits >= second, logits, -jnp.inf), -1).astype(x.dtype)
    hidden = jax.nn.relu(jnp.einsum("td,edh->eth", x, p["up"]))
    outputs = jnp.einsum("eth,ehd->etd", hidden, p["down"])
    return jnp.einsum("te,etd->td", gates, outputs)
