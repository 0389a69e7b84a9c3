"""What programs add to XLA through ``jax.extend``."""

from __future__ import annotations

import importlib.util

import pytest
from conftest import python

TRANSFORM = """
import jax, jax.numpy as jnp
import jax.extend.xla as extend
from jax._src.lib import hlo

seen = []

def cosine_for_sine(serialized):
    module = hlo.HloModule.from_serialized_hlo_module_proto(serialized)
    changed = False
    for computation in module.computations():
        for instruction in computation.instructions():
            seen.append(instruction.opcode == hlo.HloOpcode.kCustomCall)
            if instruction.opcode == hlo.HloOpcode.kSin:
                cosine = computation.create_unary_instruction(hlo.HloOpcode.kCos, instruction.operands()[0])
                computation.replace_instruction(instruction, cosine)
                changed = True
    return module.as_serialized_hlo_module_proto() if changed else None

x = jnp.arange(3.0)
ones = jnp.ones((16, 16), jnp.int8)
expected = jnp.cos(x)
extend.register_hlo_module_transformation(cosine_for_sine, name="cosine_for_sine")
print(bool(jnp.allclose(jax.jit(lambda x: jnp.sin(x))(x), expected)))
product = jax.jit(lambda a: jax.lax.dot(a, a, preferred_element_type=jnp.int32))
print(product(ones)[3, 4], any(seen))
print(extend.clear_hlo_module_transformation("cosine_for_sine"))
print(bool(jnp.allclose(jax.jit(lambda x: jnp.sin(x) + 0)(x), expected)))
print(product(ones[:8, :8])[3, 4])
import act_pjrt
print([region["where"] for region in act_pjrt.regions()])
"""


@pytest.mark.skipif(importlib.util.find_spec("jax.extend.xla") is None, reason="came with jax 0.10.2")
def test_transforms_of_the_user_are_applied_beside_ours() -> None:
    process = python("-c", TRANSFORM, platforms="act", target="gemmini")
    assert process.returncode == 0, process.stderr
    said = process.stdout.splitlines()
    # The products are on the device; the transform saw a call in the place of the first one.
    assert said == ["True", "16 True", "True", "False", "8", "['device', 'device']"]
