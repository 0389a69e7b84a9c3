"""What JAX calls when it looks for plugins (entry-point group ``jax_plugins``).

JAX initialises every registered platform when JAX_PLATFORMS is unset, and a failing one ends the program.
So act is registered only where JAX_PLATFORMS (or jax.config.jax_platforms) names it; else nothing is loaded.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import weakref
from collections.abc import Callable
from typing import Any

from act_pjrt import _library, _versions

_NAME = "act"


def _chosen_platforms() -> list[str]:
    import jax

    return [name.strip() for name in (jax.config.jax_platforms or "").split(",")]


def _device_count() -> int | None:
    """How many CPU devices the program asked for, in either of JAX's two ways; None if it did not."""
    import jax

    configured: int = getattr(jax.config, "jax_num_cpu_devices", -1)
    if configured > 0:
        return configured
    flag = re.search(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    return int(flag.group(1)) if flag else None


def _client_options() -> dict[str, Any]:
    """Options of the client, besides those of jax_pjrt_client_create_options, which JAX adds itself."""
    count = _device_count()
    return {} if count is None else {"cpu_device_count": count}


def initialize() -> None:
    """Registers the platform "act" with JAX, if it was asked for."""
    if _NAME not in _chosen_platforms():
        return
    from jax._src import xla_bridge

    if fault := _versions.fault():
        # What is raised here JAX only logs; what a factory raises is the program's error.
        xla_bridge.register_backend_factory(
            _NAME, functools.partial(_refuse, fault), priority=500, fail_quietly=False
        )
        return
    _library.export_engine_paths()
    # Only silences JAX's warning that the platform is experimental.
    xla_bridge._nonexperimental_plugins.add(_NAME)
    xla_bridge.register_plugin(
        _NAME, priority=500, library_path=str(_library.path()), options=_client_options
    )
    registration = xla_bridge._backend_factories[_NAME]
    xla_bridge._backend_factories[_NAME] = dataclasses.replace(
        registration, factory=lambda: _make_client(xla_bridge, registration.factory)
    )


def _refuse(fault: str) -> Any:
    raise RuntimeError(fault)


def _make_client(xla_bridge: Any, factory: Any) -> Any:
    from act_pjrt import _callbacks, _costs, _dlpack, _handlers

    client = factory()
    _handlers.push_jaxlib_handlers()
    _callbacks.install()
    _dlpack.install()
    _costs.install()
    _key_cache_by_cost_model()
    if "cpu" not in _chosen_platforms():
        # JAX looks up the backend "cpu" for its callbacks and for DLPack. That is the name of our platform
        # in PJRT (XLA's CPU backend runs the host part), so where no other was asked for we are the one.
        xla_bridge._backends["cpu"] = client
        _run_hooks_once(xla_bridge)
    return client


def _key_cache_by_cost_model() -> None:
    """Makes JAX's compilation cache tell programs by the user's cost model too.

    JAX asks a client for its version once, and the function may change later; what it asks for every key is
    its hook.
    """
    from act_pjrt import _cost_model

    try:
        from jax._src import cache_key
    except ImportError:
        return
    original = getattr(cache_key, "custom_hook", None)
    if original is None or getattr(original, "serves_act", False):
        return

    def custom_hook() -> str:
        said: str = original()
        model = _cost_model.current()
        return said if model is None else f"{said}; act-pjrt cost model {model}"

    custom_hook.serves_act = True  # type: ignore[attr-defined]
    cache_key.custom_hook = custom_hook


def _run_hooks_once(xla_bridge: Any) -> None:
    """Makes hooks on initialised backends run once for a client that has two names."""
    original = getattr(xla_bridge, "register_backend_initialization_hook", None)
    if original is None or getattr(original, "serves_act", False):
        return

    def register_backend_initialization_hook(hook: Callable[[Any], None]) -> None:
        done: weakref.WeakSet[Any] = weakref.WeakSet()

        def once(client: Any) -> None:
            if client not in done:
                done.add(client)
                hook(client)

        original(once)

    register_backend_initialization_hook.serves_act = True  # type: ignore[attr-defined]
    xla_bridge.register_backend_initialization_hook = register_backend_initialization_hook
