"""Offloading by itself: JAX programs on the target `reference`, whose kernels the reference evaluator runs,
give what XLA's CPU backend gives, whatever regions the device takes.

    cargo build --example reference_device
    REFERENCE_DEVICE=target/debug/examples/libreference_device.so python -m pytest plugin/tests/offload
"""

import ctypes
import json
import os

import jax
import numpy as np
import pytest
from jax._src import xla_bridge
from programs import DONATING, PROGRAMS, STAYS, WITHOUT_CONTRACTION

LIBRARY = os.environ["REFERENCE_DEVICE"]
#: What the device takes: everything, or less and less.
DEVICES = {
    "everything": {},
    "nine_operators": {"REFERENCE_MAX_OPERATORS": "9"},
    "three_operators": {"REFERENCE_MAX_OPERATORS": "3"},
    "bare_contractions": {"REFERENCE_MAX_OPERATORS": "1"},
    "no_reduce": {"REFERENCE_RULED_OUT": "reduce"},
    "no_convert_no_tanh": {"REFERENCE_RULED_OUT": "convert,tanh,add"},
    "by_chance": {"REFERENCE_REFUSED_PERMILLE": "700"},
    "nothing": {"REFERENCE_MAX_OPERATORS": "0"},
}
VARIABLES = ("REFERENCE_MAX_OPERATORS", "REFERENCE_RULED_OUT", "REFERENCE_REFUSED_PERMILLE")


@pytest.fixture(scope="session")
def library():
    library = ctypes.CDLL(LIBRARY)
    library.reference_device_register()
    for name in ("act_regions_json", "act_last_run_json"):
        getattr(library, name).restype = ctypes.c_void_p
    jax.config.update("jax_platforms", "act,cpu")
    xla_bridge.register_plugin("act", library_path=LIBRARY, options={"target": "reference"})
    return library


def json_of(library, name):
    pointer = getattr(library, name)()
    try:
        return json.loads(ctypes.string_at(pointer))
    finally:
        library.act_string_free(ctypes.c_void_p(pointer))


def run(backend, function, arguments, **options):
    device = jax.devices(backend)[0]
    arguments = jax.device_put(arguments, device)
    # A fresh function each time: nothing compiled for another device is found again.
    return jax.tree.map(np.asarray, jax.jit(lambda *a: function(*a), **options)(*arguments))


def compare(actual, expected):
    def leaf(a, e):
        assert a.dtype == e.dtype
        assert a.shape == e.shape
        if np.issubdtype(e.dtype, np.floating) or e.dtype == jax.numpy.bfloat16:
            tolerance = {4: 1e-4, 2: 4e-2}[e.dtype.itemsize]
            a, e = a.astype(np.float64), e.astype(np.float64)
            np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance * np.max(np.abs(e), initial=1e-3))
        else:
            np.testing.assert_array_equal(a, e)

    jax.tree.map(leaf, actual, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_result_as_cpu(library, monkeypatch, name, device):
    for variable in VARIABLES:
        monkeypatch.setenv(variable, DEVICES[device].get(variable, ""))
    function, *arguments = PROGRAMS[name]
    before = len(json_of(library, "act_regions_json"))
    actual = run("act", function, arguments)
    regions = json_of(library, "act_regions_json")[before:]
    compare(actual, run("cpu", function, arguments))
    assert bool(regions) == (name not in WITHOUT_CONTRACTION), "every contraction is accounted for"
    if device == "everything" and name not in STAYS:
        assert all(r["where"] == "device" for r in regions), regions
    if device == "nothing":
        assert all(r["where"] == "host" for r in regions), regions


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", DONATING)
def test_donated_arguments(library, monkeypatch, name, device):
    for variable in VARIABLES:
        monkeypatch.setenv(variable, DEVICES[device].get(variable, ""))
    function, *arguments = DONATING[name]
    actual = run("act", function, arguments, donate_argnums=0)
    compare(actual, run("cpu", function, arguments))
