"""Making act a device of TensorFlow: ``ACT_TENSORFLOW=1`` in the environment, or :func:`enable` in a program.

Nothing else makes TensorFlow look at act; a file in site-packages (``act_pjrt_tensorflow.pth``) reads the
variable when Python starts. It imports no TensorFlow, and puts nothing into the environment: what a program
starts decides for itself.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from act_pjrt import _library, _tensorflow_context, _tensorflow_variables

__all__ = ["enable"]

_TENSORFLOW = "tensorflow"

# What TensorFlow loads; it finds libact_pjrt.so beside itself.
_LOADER = "libact_tensorflow.so"

# The releases that the loader takes (plugin/tensorflow/src/release.rs).
_TESTED = ("2.20", "2.21")
_REMEDY = 'pip install "tensorflow>=2.20,<2.22"'

_enabled = False


def enable() -> None:
    """Makes the devices ``ACT:0``… known to TensorFlow, which from then on runs on them by default.

    May be called before TensorFlow is imported, or after that before it is first used. With a release of
    TensorFlow that act does not work with, a warning says so, and there are no such devices.

    Raises:
        RuntimeError: TensorFlow is in use already.
    """
    global _enabled
    if _enabled:
        return
    imported = sys.modules.get(_TENSORFLOW)
    if imported is None:
        sys.meta_path.insert(0, _AfterImport())
    else:
        _load_into(imported)
    _enabled = True


def _load_into(tensorflow: Any) -> None:
    """Loads the device into an imported TensorFlow, or warns that it cannot be."""
    version = str(tensorflow.__version__)
    if not version.startswith(tuple(f"{release}." for release in _TESTED)):
        warnings.warn(
            f"act: no ACT device: TensorFlow {version} is not a release that act-pjrt {_own_version()} "
            f"was tested with; it works with {' and '.join(_TESTED)}: {_REMEDY}",
            RuntimeWarning,
            stacklevel=3,
        )
        return
    from tensorflow.python.eager import context
    from tensorflow.python.framework import load_library

    if context.context()._initialized:
        raise RuntimeError(
            "act: TensorFlow is in use already; call act_pjrt.tensorflow.enable() before its first operation"
        )
    _library.export_engine_paths()
    loader = _library.path().with_name(_LOADER)
    load_library.load_pluggable_device_library(str(loader))
    _tensorflow_context.install(loader)
    _tensorflow_variables.install()
    if version.startswith("2.20."):
        _tensorflow_context.guard_compiled_functions_on_cpu()


def _own_version() -> str:
    from importlib.metadata import version

    return version("act-pjrt")


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds TensorFlow as everyone else does, and loads the device when its import is over."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _TENSORFLOW:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _LoadedAfter(spec.loader)
        return spec


class _LoadedAfter(importlib.abc.Loader):
    """TensorFlow's own loader, and one thing more to do."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._own.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._own
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        self._own.exec_module(module)
        _load_into(module)
