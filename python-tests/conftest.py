"""Running Python programs in processes of their own, on a chosen platform and target."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

# Beginnings of the names of variables that a test decides on itself.
FRAMEWORK_VARIABLES = ("JAX_", "ACT_", "XLA_", "TF_", "KERAS_")


def python(
    *arguments: str | Path,
    platforms: str | None = None,
    target: str | None = None,
    devices: int = 1,
    timeout: float = 600,
    interpreter: Path | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Runs ``python ARGUMENTS`` with JAX_PLATFORMS and ACT_TARGET as given (None: unset); keeps its output.

    The test's own variables of frameworks and of act are not passed on. ``interpreter`` is another Python.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith(FRAMEWORK_VARIABLES)}
    # Nothing of a test is kept for the next one, or in the user's own cache.
    env["ACT_CACHE_DIR"] = "off"
    env |= environment
    # Quiet: XLA's log lines would drown the output that tests read.
    env.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if platforms is not None:
        env["JAX_PLATFORMS"] = platforms
    if target is not None:
        env["ACT_TARGET"] = target
    if devices != 1:
        env["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    command = [str(interpreter or sys.executable), *map(str, arguments)]
    return subprocess.run(
        command, env=env, cwd=HERE, text=True, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL
    )


def tensorflow_python(
    *arguments: str | Path, act: bool = True, **more: Any
) -> subprocess.CompletedProcess[str]:
    """As :func:`python`, in the environment where TensorFlow is; with ``act`` its devices are turned on.

    ACT_TEST_TENSORFLOW names another environment, with another release of TensorFlow.
    """
    environment = os.environ.get("ACT_TEST_TENSORFLOW", ".venv-tensorflow")
    interpreter = HERE.parent / environment / "bin" / "python"
    assert interpreter.exists(), "ci/install-tensorflow makes the environment of these tests"
    if act:
        more.setdefault("ACT_TENSORFLOW", "1")
    return python(*arguments, interpreter=interpreter, **more)
