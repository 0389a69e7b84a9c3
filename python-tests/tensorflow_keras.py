"""Keras models in the element types of accelerators.

``tensorflow_keras.py FOLDER MODEL...`` builds them, has each predict, writes the predictions into the folder,
and prints as JSON the device and which instructions it has executed for each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import act_pjrt
import numpy as np
import tensorflow as tf

layers = tf.keras.layers


def int8() -> tuple[Any, tuple[int, ...]]:
    """Weights quantized by Keras, which then quantizes activations too and multiplies int8 by int8."""
    model = tf.keras.Sequential([layers.Input((64,)), layers.Dense(32, "relu"), layers.Dense(16)])
    model.quantize("int8", filters=[".*dense.*"])
    return model, (32, 64)


def bfloat16() -> tuple[Any, tuple[int, ...]]:
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    dense = [layers.Dense(64, "relu"), layers.Dense(64), layers.Dense(4, dtype="float32")]
    return tf.keras.Sequential([layers.Input((64,)), *dense]), (64, 64)


def attention() -> tuple[Any, tuple[int, ...]]:
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    inputs = layers.Input((64, 64))
    attended = layers.MultiHeadAttention(1, 64, flash_attention=False)(inputs, inputs)
    return tf.keras.Model(inputs, layers.Activation("linear", dtype="float32")(attended)), (1, 64, 64)


def executed() -> dict[str, int]:
    counts: dict[str, int] = {}
    for program in act_pjrt.executables():
        for name, count in program["total"]["instructions"].items():
            counts[name] = counts.get(name, 0) + count
    return counts


def predict(name: str, folder: Path) -> dict[str, int]:
    """Writes what the model predicts; what was executed for it."""
    tf.keras.utils.set_random_seed(0)
    tf.keras.mixed_precision.set_global_policy("float32")
    model, shape = MODELS[name]()
    model.compile(jit_compile=True)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    before = executed()
    np.save(folder / f"{name}.npy", model.predict(x, batch_size=shape[0], verbose=0))
    counts = {instruction: count - before.get(instruction, 0) for instruction, count in executed().items()}
    return {instruction: count for instruction, count in counts.items() if count}


MODELS = {"int8": int8, "bfloat16": bfloat16, "attention": attention}

if __name__ == "__main__":
    counts = {name: predict(name, Path(sys.argv[1])) for name in sys.argv[2:]}
    print(json.dumps([tf.constant(1.0).device[-5:], counts]))
