"""Prints the lowest manylinux tag that is true of some ELF files, by the symbol versions they import.

Fails when one needs a shared library, or a version of libstdc++, that a manylinux system need not have.
"""

from __future__ import annotations

import re
import subprocess
import sys

# What PEP 600 lets a wheel expect of every system (the part of the list that concerns us).
EXPECTED = re.compile(
    r"(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|libz|ld-linux-x86-64)\.so(\.\d+)?$"
)


# The newest versions in the libstdc++ of GCC 8, which systems with glibc 2.28 have.
LIBSTDCXX = {"GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11)}


def needed(file: str) -> list[str]:
    """The shared libraries that an ELF file names as needed."""
    text = subprocess.run(["readelf", "-d", file], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", text)


def imported(file: str, library: str) -> set[tuple[int, ...]]:
    """The versions of a library's symbols that an ELF file imports, as in GLIBC_2.17."""
    text = subprocess.run(["objdump", "-T", file], check=True, capture_output=True, text=True).stdout
    return {
        tuple(map(int, version.split("."))) for version in re.findall(rf"\b{library}_(\d+(?:\.\d+)+)", text)
    }


def tag(files: list[str]) -> str:
    """The manylinux tag for a wheel with these files. Raises SystemExit where none would be honest."""
    for file in files:
        if strangers := [name for name in needed(file) if not EXPECTED.match(name)]:
            raise SystemExit(f"{file} needs {', '.join(strangers)}, which a manylinux system need not have")
        for library, newest in LIBSTDCXX.items():
            if late := {version for version in imported(file, library) if version > newest}:
                raise SystemExit(f"{file} needs {library}_{'.'.join(map(str, max(late)))} of libstdc++")
    major, minor = max((2, 17), *(version[:2] for file in files for version in imported(file, "GLIBC")))
    return f"manylinux_{major}_{minor}"


if __name__ == "__main__":
    print(tag(sys.argv[1:]))
