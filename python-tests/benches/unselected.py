"""What act costs JAX programs that do not ask for it: the first ``jax.devices()``, with act and without.

    python python-tests/benches/unselected.py [--rounds 20]

Processes of both kinds take turns. Each has a folder with links to all installed packages, with act's among
them or without. Printed are the medians, their distance, and the most that the project claims for it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import act_pjrt

# JAX is told nothing, so it looks for plugins; its modules have been imported before.
FIRST_DEVICES = """
import sys, time
sys.path.append(sys.argv[1])
import jax
begin = time.perf_counter()
jax.devices()
print(time.perf_counter() - begin)
maps = open("/proc/self/maps").read()
assert "libact_pjrt" not in maps and "pjrt_c_api_cpu_plugin" not in maps
assert ("act_pjrt.registration" in sys.modules) == (sys.argv[2] == "installed")
"""


def linked(folder: Path, with_act: bool) -> Path:
    """A folder that has what is beside act_pjrt, linked."""
    folder.mkdir()
    for entry in Path(act_pjrt.__file__).resolve().parents[1].iterdir():
        if with_act or not entry.name.startswith("act_pjrt"):
            (folder / entry.name).symlink_to(entry)
    return folder


def seconds(folder: Path, kind: str) -> float:
    """Of the first ``jax.devices()`` of a new process."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("JAX_", "ACT_", "PYTHON"))}
    # No site-packages but those of the folder.
    command = [sys.executable, "-S", "-c", FIRST_DEVICES, str(folder), kind]
    return float(subprocess.run(command, env=env, check=True, text=True, stdout=subprocess.PIPE).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folders = {kind: linked(Path(name) / kind, kind == "installed") for kind in ("installed", "absent")}
        times: dict[str, list[float]] = {kind: [] for kind in folders}
        # The first round fills the file cache.
        for number in range(rounds + 1):
            for kind in folders if number % 2 else reversed(folders):
                measured = seconds(folders[kind], kind)
                if number:
                    times[kind].append(measured)
    installed, absent = (statistics.median(times[kind]) for kind in ("installed", "absent"))
    print(f"first jax.devices() with act-pjrt installed, but not selected: {installed * 1e3:.1f} ms")
    print(f"without act-pjrt: {absent * 1e3:.1f} ms")
    print(f"{(installed - absent) * 1e3:+.2f} ms (claimed: less than +5 ms)")


if __name__ == "__main__":
    main()
