"""JAX's own test suite as a measure: what passes on JAX's CPU backend has to pass on act."""
