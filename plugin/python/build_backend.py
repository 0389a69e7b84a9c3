"""Builds the wheel (PEP 517), from the repository as from its source distribution. Around maturin, which
builds the command `act`, it builds the native libraries and puts them, with the carried XLA library, where
the wheel takes them from. Needs Rust and the Debian packages of ci/apt-packages.txt.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import maturin

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "act_pjrt"
# Here in the source distribution, two folders up in the repository.
ROOT = next(folder for folder in [HERE, *HERE.parents] if (folder / "Cargo.lock").is_file())

LIBRARIES = {"act-pjrt": "libact_pjrt.so", "act-tensorflow": "libact_tensorflow.so"}
# What maturin leaves out of a source distribution; to it the workspace is what the command depends on.
SOURCES = [
    ".cargo/config.toml",
    "Cargo.toml",
    "LICENSE",
    "ci/apt-packages.txt",
    "ci/xla-requirements.txt",
    "ci/xla.sha256",
    "plugin/python/act_pjrt_tensorflow.pth",
    "plugin/python/build_backend.py",
    "plugin/tensorflow",
]
# What the libraries are linked for, whatever they are linked with (plugin/src/glibc.rs).
TAG = "manylinux_2_28"
LLVM_COPYRIGHT = Path("/usr/share/doc/libmlir-22-dev/copyright")


def _build_libraries() -> None:
    packages = [word for package in LIBRARIES for word in ("-p", package)]
    subprocess.run(["cargo", "build", "--release", "--locked", *packages, "--lib"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for library in LIBRARIES.values():
        built = target / "release" / library
        subprocess.run(["strip", "--strip-unneeded", "-o", PACKAGE / library, built], check=True)


def _add_licences() -> None:
    if ROOT != HERE:
        shutil.copyfile(ROOT / "LICENSE", HERE / "LICENSE")
    # MLIR and LLVM are linked into the library.
    shutil.copyfile(LLVM_COPYRIGHT, HERE / "LLVM-COPYRIGHT")


def _carry_xla() -> None:
    """Copies XLA's library and its licences from third_party; where there is none, from the pinned wheel."""
    pinned = [line.split() for line in (ROOT / "ci" / "xla.sha256").read_text().splitlines()]
    wanted = {name: digest for digest, name in pinned}
    folder = ROOT / "third_party" / "xla"
    if all((folder / name).is_file() for name in wanted):
        contents = {name: (folder / name).read_bytes() for name in wanted}
    else:
        contents = _downloaded(set(wanted))
    for name, content in contents.items():
        if hashlib.sha256(content).hexdigest() != wanted[name]:
            raise RuntimeError(f"{name} is not the file that ci/xla.sha256 pins")
        (PACKAGE / "xla" / name).write_bytes(content)


def _downloaded(names: set[str]) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as download:
        requirements = ["--require-hashes", "-r", str(ROOT / "ci" / "xla-requirements.txt")]
        pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--only-binary", ":all:", *requirements, "-d", download], check=True)
        [wheel] = Path(download).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            members = {member.rsplit("/", 1)[-1]: member for member in archive.namelist()}
            return {name: archive.read(members[name]) for name in names}


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """What building a wheel needs: pip fetches XLA's library."""
    return [*maturin.get_requires_for_build_wheel(config_settings), "pip"]


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds a wheel into a folder and returns its name."""
    _carry_xla()
    _add_licences()
    _build_libraries()
    os.environ["MATURIN_PEP517_ARGS"] = f"--locked --compatibility {TAG} --auditwheel skip"
    return str(maturin.build_wheel(wheel_directory, config_settings, metadata_directory))


def get_requires_for_build_sdist(config_settings: dict[str, Any] | None = None) -> list[str]:
    """What building a source distribution needs."""
    return list(maturin.get_requires_for_build_sdist(config_settings))


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """Builds a source distribution into a folder and returns its name."""
    name = str(maturin.build_sdist(sdist_directory, config_settings))
    file = Path(sdist_directory) / name
    content = io.BytesIO()
    with tarfile.open(file) as archive, tarfile.open(fileobj=content, mode="w:gz") as whole:
        folder = name.removesuffix(".tar.gz")
        added = {f"{folder}/{source.removeprefix('plugin/python/')}": ROOT / source for source in SOURCES}
        for member in archive:
            if member.name not in added:
                whole.addfile(member, archive.extractfile(member) if member.isfile() else None)
        for inside, source in added.items():
            whole.add(source, inside)
    file.write_bytes(content.getvalue())
    return name


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: dict[str, Any] | None = None
) -> str:
    """Writes a wheel's metadata, to which the licences belong, into a folder and returns its name."""
    _carry_xla()
    _add_licences()
    return str(maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings))
