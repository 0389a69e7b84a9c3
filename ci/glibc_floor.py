"""Prints the lowest manylinux tag that is true of some ELF files, by the symbol versions they import.

Fails when one needs a shared library that a manylinux system need not have.
"""

from __future__ import annotations

import re
import subprocess
import sys

# What PEP 600 lets a wheel expect of every system (the part of the list that concerns us).
EXPECTED = re.compile(
    r"(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|libz|ld-linux-x86-64)\.so(\.\d+)?$"
)


def needed(file: str) -> list[str]:
    """The shared libraries that an ELF file names as needed."""
    text = subprocess.run(["readelf", "-d", file], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", text)


def glibc_version(file: str) -> tuple[int, int]:
    """The highest version of a glibc symbol that an ELF file imports."""
    text = subprocess.run(["objdump", "-T", file], check=True, capture_output=True, text=True).stdout
    found = [(int(major), int(minor)) for major, minor in re.findall(r"\(?GLIBC_(\d+)\.(\d+)", text)]
    return max(found, default=(2, 17))


def tag(files: list[str]) -> str:
    """The manylinux tag for a wheel with these files. Raises SystemExit where none would be honest."""
    for file in files:
        if strangers := [name for name in needed(file) if not EXPECTED.match(name)]:
            raise SystemExit(f"{file} needs {', '.join(strangers)}, which a manylinux system need not have")
    major, minor = max((2, 17), *(glibc_version(file) for file in files))
    return f"manylinux_{major}_{minor}"


if __name__ == "__main__":
    print(tag(sys.argv[1:]))
