"""One step of gradient descent on the softmax cross-entropy of a model's logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    log_probabilities = jax.nn.log_softmax(logits.astype(jnp.float32), -1)
    chosen = jax.nn.one_hot(labels, logits.shape[-1], dtype=jnp.float32)
    return -(log_probabilities * chosen).sum(-1).mean()


def step(model: Callable[[Any, jax.Array], jax.Array], rate: float = 0.125) -> Callable[..., Any]:
    """A function of parameters, inputs and labels; gives the loss and the new parameters."""

    def train(params: Any, x: jax.Array, labels: jax.Array) -> Any:
        loss, gradients = jax.value_and_grad(lambda p: cross_entropy(model(p, x), labels))(params)
        return loss, jax.tree.map(lambda p, g: (p - rate * g).astype(p.dtype), params, gradients)

    return train
