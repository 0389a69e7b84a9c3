"""The installed wheel: what is in it, what it may be used with, and what it depends on."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from conftest import HERE

ROOT = HERE.parent


@pytest.fixture(scope="module")
def wheel() -> Distribution:
    """The distribution as it was installed."""
    return distribution("act-pjrt")


def located(wheel: Distribution, name: str) -> Path:
    """The one installed file whose path ends so."""
    found = [file for file in wheel.files or [] if str(file).endswith(name)]
    assert len(found) == 1, (name, found)
    return Path(str(found[0].locate())).resolve()


def test_tests_run_against_the_wheel(wheel: Distribution) -> None:
    """Not against the source tree."""
    import act_pjrt

    assert Path(act_pjrt.__file__).resolve() == located(wheel, "act_pjrt/__init__.py")
    assert ROOT / "plugin" not in Path(act_pjrt.__file__).resolve().parents


def test_registers_itself_with_jax(wheel: Distribution) -> None:
    entries = {(entry.group, entry.name, entry.value) for entry in wheel.entry_points}
    assert ("jax_plugins", "act", "act_pjrt.registration") in entries


def test_carries_the_pinned_xla_library_and_licences(wheel: Distribution) -> None:
    for line in (ROOT / "ci" / "xla.sha256").read_text().splitlines():
        expected, name = line.split()
        folder = "act_pjrt/xla" if name.endswith(".so") else "dist-info/licenses/act_pjrt/xla"
        content = located(wheel, f"{folder}/{name}")
        assert hashlib.sha256(content.read_bytes()).hexdigest() == expected
        if name.endswith(".so"):
            assert expected in located(wheel, "act_pjrt/xla/PROVENANCE.md").read_text()
    assert "Apache License" in located(wheel, "dist-info/licenses/LICENSE").read_text()
    assert "LLVM" in located(wheel, "dist-info/licenses/LLVM-COPYRIGHT").read_text()


def test_tag_is_true_of_every_binary(wheel: Distribution) -> None:
    """No file in the wheel needs a newer glibc, or another library, than the wheel's tag promises."""
    tag = re.search(r"^Tag: py3-none-(manylinux_2_\d+)_x86_64$", wheel.read_text("WHEEL") or "", re.MULTILINE)
    assert tag
    assert tag.group(1) == "manylinux_2_28"
    binaries = [located(wheel, "act_pjrt/libact_pjrt.so"), located(wheel, "bin/act")]
    binaries.append(located(wheel, "act_pjrt/libact_tensorflow.so"))
    binaries.append(located(wheel, "act_pjrt/xla/pjrt_c_api_cpu_plugin.so"))
    floor = subprocess.run(
        [sys.executable, ROOT / "ci" / "glibc_floor.py", *binaries],
        check=True,
        capture_output=True,
        text=True,
    )
    assert floor.stdout.strip() == tag.group(1)


def exported(library: Path) -> set[str]:
    """The names that a library offers."""
    table = subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
    )
    return {line.split()[-1].split("@")[0] for line in table.stdout.splitlines()}


def test_library_exports_nothing_else(wheel: Distribution) -> None:
    """Everything else is hidden, so that two copies of LLVM in one process do not meet."""
    names = exported(located(wheel, "act_pjrt/libact_pjrt.so"))
    assert "GetPjrtApi" in names
    assert {name for name in names if not name.startswith("act_")} == {"GetPjrtApi"}


def test_tensorflows_library_links_nothing_of_it(wheel: Distribution) -> None:
    """It offers what TensorFlow and our module look for in it, and needs the C library alone."""
    library = located(wheel, "act_pjrt/libact_tensorflow.so")
    tensorflows = {"GetPjrtApi", "TFNPD_InitPlugin", "TF_InitKernel"}
    ours = {"act_tensorflow_memory", "act_tensorflow_optimized_program", "act_tensorflow_reset_peak"}
    assert exported(library) == tensorflows | ours
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    # Before glibc 2.34 the last two were libraries of their own.
    c_library = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2"}
    assert needed <= c_library | {"libgcc_s.so.1"}


def test_python_starts_with_one_line_for_tensorflow(wheel: Distribution) -> None:
    """Beside the packages, where Python executes it; it does nothing where the variable is not set."""
    (line,) = located(wheel, "act_pjrt_tensorflow.pth").read_text().splitlines()
    assert line.startswith("import os; os.environ.get(")
    assert (
        located(wheel, "act_pjrt_tensorflow.pth").parent
        == located(wheel, "act_pjrt/__init__.py").parent.parent
    )


def test_dependencies(wheel: Distribution) -> None:
    required = wheel.requires or []
    from act_pjrt import _versions

    # What pip is told is what the package itself checks.
    oldest = ".".join(map(str, _versions.OLDEST))
    after = f"{_versions.NEWEST[0]}.{_versions.NEWEST[1] + 1}"
    for name in ("jax", "jaxlib"):
        # The order of the two bounds is the tool's.
        bounds = next(line[len(name) :] for line in required if re.match(rf"{name}\W", line))
        assert set(bounds.strip(" ()").split(",")) == {f">={oldest}", f"<{after}"}
    assert any(line.startswith("ortools") and "9.15" in line for line in required)
    assert [line for line in required if "z3-solver" in line and "extra" in line]


def test_command_is_installed(wheel: Distribution) -> None:
    command = located(wheel, "bin/act")
    version = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    assert version.strip() == f"act {wheel.version}"
