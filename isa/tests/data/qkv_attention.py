"""Writes qkv_attention.hex: attention as the paper's example accelerator computes it, by JAX on the CPU.

Every step rounds to bf16: scores, exponentials, row sums, quotients, product with v. Prints 64x64 bf16 values
as four hexadecimal digits each, a row per line.
"""

import pathlib

import jax.numpy as jnp
import numpy as np


def operand(a: int, b: int, modulus: int) -> jnp.ndarray:
    """Small exact values: ((a*i + b*j) mod modulus - modulus//2) / 16."""
    i, j = np.meshgrid(np.arange(64), np.arange(64), indexing="ij")
    return jnp.asarray(((a * i + b * j) % modulus - modulus // 2) / 16, jnp.bfloat16)


q, k, v = operand(7, 3, 17), operand(5, 11, 13), operand(3, 13, 29)
scores = jnp.dot(q, k.T)
exponentials = jnp.exp(scores)
weights = exponentials / jnp.sum(exponentials, axis=1, keepdims=True)
result = np.asarray(jnp.dot(weights, v)).view(np.uint16)
lines = ["".join(f"{x:04x}" for x in row) for row in result]
pathlib.Path(__file__).with_suffix(".hex").write_text("\n".join(lines) + "\n")
