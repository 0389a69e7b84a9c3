"""Which versions of JAX this package works with, and what to do about another one."""

from __future__ import annotations

import warnings
from importlib.metadata import version

# The oldest and the newest minor version that the tests were run with; pyproject.toml says the same.
OLDEST = (0, 9)
NEWEST = (0, 12)


def _minor(text: str) -> tuple[int, ...]:
    """What counts of a version; release candidates and nightly builds differ behind it."""
    return tuple(int(part) for part in text.split(".")[:2])


def fault() -> str | None:
    """Why act cannot run with the JAX that is here. Warns where that is newer than what has been tried."""
    import jax
    import jaxlib

    given = [_minor(jax.__version__), _minor(jaxlib.__version__)]
    if min(given) >= OLDEST and max(given) <= NEWEST:
        return None
    oldest, newest = (".".join(map(str, numbers)) for numbers in (OLDEST, NEWEST))
    bounds = f">={oldest},<{NEWEST[0]}.{NEWEST[1] + 1}"
    said = (
        f"act-pjrt {version('act-pjrt')} works with jax {oldest} to {newest}, "
        f"and this is jax {jax.__version__} with jaxlib {jaxlib.__version__}: "
        f'pip install "jax{bounds}" "jaxlib{bounds}"'
    )
    if min(given) < OLDEST:
        return said
    warnings.warn(said, RuntimeWarning, stacklevel=2)
    return None
