"""Small models in plain JAX, written for the corpus of regions and run end to end on the targets.

Weights come from numpy's generator with fixed seeds. Nothing here knows act. ``registry.VARIANTS`` lists
every model in the sizes and element types that are used.
"""
