"""Runs files of JAX's own test suite on cpu and on act, and lists what passes on the first only.

    git clone --branch jax-v$(python -c 'import jax; print(jax.__version__)') https://github.com/jax-ml/jax
    cd python-tests
    python -m jax_suite ../jax lax_test api_test --target gemmini --devices 8 --sample 200

The checkout has to be of the installed version. Each file runs in a process of its own, and once more without
the test that ended it where it does not survive. Besides the tables on standard output, ``--out`` gets the
log and the JUnit file of every run and ``regressions.txt`` with the failures' texts. The exit code is 1 where
a test passes on cpu and not on act.

JAX's tests need hypothesis, and a few of them cloudpickle and portpicker.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jax_suite import outcomes
from jax_suite.outcomes import Outcome, Outcomes

HERE = Path(__file__).resolve().parent

# Variables of the caller's that would decide what the tests see.
_OURS = ("JAX_PLATFORMS", "JAX_TEST_DUT", "ACT_TARGET", "XLA_FLAGS", "JAX_SUITE_", "PYTEST_")


@dataclass(frozen=True)
class Platform:
    """Where the tests run: the name of the column, JAX_PLATFORMS and ACT_TARGET."""

    name: str
    platforms: str
    target: str | None = None


@dataclass(frozen=True)
class Settings:
    """How they run, the same on every platform."""

    checkout: Path
    out: Path
    devices: int
    sample: int
    cases: int
    x64: bool
    timeout: float
    only: Path | None


def environment(settings: Settings, platform: Platform, log: Path) -> dict[str, str]:
    """The variables of one run."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    path = [str(HERE.parent), *filter(None, [env.get("PYTHONPATH")])]
    env |= {
        "PYTHONPATH": os.pathsep.join(path),
        "JAX_PLATFORMS": platform.platforms,
        # Tests that ask what they run on get the answer "cpu" on both sides.
        "JAX_TEST_DUT": "cpu",
        "JAX_ENABLE_X64": str(int(settings.x64)),
        "JAX_NUM_GENERATED_CASES": str(settings.cases),
        "JAX_SKIP_SLOW_TESTS": "1",
        "JAX_SUITE_LOG": str(log),
        "JAX_SUITE_SAMPLE": str(settings.sample),
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={settings.devices}",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    if platform.target:
        env["ACT_TARGET"] = platform.target
    if settings.only:
        env["JAX_SUITE_ONLY"] = str(settings.only)
    return env


def run(settings: Settings, platform: Platform, file: str) -> Outcomes:
    """Runs one file on one platform, again after each test that ends the process."""
    folder = settings.out / platform.name
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{file}.jsonl"
    log.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "jax_suite.recorder", "-p", "no:cacheprovider"]
    command += ["--no-header", "--tb=short", f"tests/{file}.py"]
    env = environment(settings, platform, log)
    left = settings.timeout
    ended: Outcomes = {}
    while True:
        before = set(outcomes.read(log)) | set(ended)
        with (folder / f"{file}.out").open("ab") as output:
            process = subprocess.Popen(
                command,
                cwd=settings.checkout,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            try:
                process.wait(max(left, 1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                stopped = outcomes.unfinished(log)
                if stopped:
                    ended[stopped] = Outcome("stopped", 0.0, f"not done after {settings.timeout:g} s")
                break
        culprit = outcomes.unfinished(log)
        if process.returncode >= 0 or culprit is None or culprit in before:
            break
        ended[culprit] = Outcome("crashed", 0.0, f"the process ended with signal {-process.returncode}")
    found = ended | outcomes.read(log)
    outcomes.write_junit(found, f"{platform.name}.{file}", folder / f"{file}.xml")
    return found


def check_version(checkout: Path) -> None:
    """Refuses a checkout that holds no tests; says so where its version cannot be the installed one."""
    if not (checkout / "tests").is_dir():
        raise SystemExit(f"{checkout} is no checkout of JAX's repository: it has no folder tests")
    import jax

    version = checkout / "jax" / "version.py"
    if version.is_file() and f'_version = "{jax.__version__}"' not in version.read_text():
        raise SystemExit(
            f"{checkout} is not of the installed version: check out the tag jax-v{jax.__version__}"
        )


def row(file: str, found: dict[str, Outcomes]) -> str:
    """A line of the table."""
    cells = []
    for platform in found:
        number = outcomes.counts(found[platform])
        bad = number["failed"] + number["crashed"] + number["stopped"]
        cells.append(f"{number['passed']:6}{bad:6}{number['skipped']:6}")
    return f"{file:36}" + "  |".join(cells)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m jax_suite", description=__doc__.split("\n")[0])
    parser.add_argument("checkout", type=Path, help="a checkout of JAX's repository at the installed version")
    parser.add_argument("files", nargs="+", help="test files, as in lax_test")
    parser.add_argument(
        "--target", action="append", default=[], help="a target; none: everything on the host"
    )
    parser.add_argument(
        "--platforms", default="act", help="JAX_PLATFORMS of the runs on act: act, or act,cpu"
    )
    parser.add_argument("--devices", type=int, default=1, help="number of devices")
    parser.add_argument(
        "--sample", type=int, default=0, help="the most tests of a file, drawn by their names"
    )
    parser.add_argument("--cases", type=int, default=1, help="JAX_NUM_GENERATED_CASES")
    parser.add_argument("--x64", action="store_true", help="JAX_ENABLE_X64")
    parser.add_argument(
        "--timeout", type=float, default=1200, help="seconds that a file may take on a platform"
    )
    parser.add_argument("--only", type=Path, help="a file with the tests to run, one name per line")
    parser.add_argument("--out", type=Path, default=Path("jax_suite_results"), help="where the results go")
    return parser.parse_args()


@contextlib.contextmanager
def report(path: Path) -> Iterator[list[str]]:
    """A list of lines, which are in the file whenever they have changed and the block goes on."""
    lines: list[str] = []
    try:
        yield lines
    finally:
        path.write_text("\n".join(lines) + "\n")


def main() -> int:
    chosen = arguments()
    check_version(chosen.checkout)
    settings = Settings(
        checkout=chosen.checkout.resolve(),
        out=chosen.out.resolve(),
        devices=chosen.devices,
        sample=chosen.sample,
        cases=chosen.cases,
        x64=chosen.x64,
        timeout=chosen.timeout,
        only=chosen.only and chosen.only.resolve(),
    )
    cpu = Platform("cpu", "cpu")
    mine = [Platform(f"act.{name or 'host'}", chosen.platforms, name) for name in chosen.target or [None]]
    platforms = [cpu, *mine]
    print(f"{'':36}" + "  |".join(f"{platform.name:>18}" for platform in platforms))
    print(f"{'file':36}" + "  |".join("  pass  fail  skip" for _ in platforms), flush=True)
    failed = False
    settings.out.mkdir(parents=True, exist_ok=True)
    with report(settings.out / "regressions.txt") as lines:
        for file in chosen.files:
            found = {platform.name: run(settings, platform, file) for platform in platforms}
            print(row(file, found), flush=True)
            for platform in mine:
                worse = outcomes.regressions(found["cpu"], found[platform.name])
                failed = failed or bool(worse)
                for cause, tests in worse.items():
                    print(f"    {platform.name}: {len(tests)} x {cause}", flush=True)
                    lines += [f"== {platform.name} {file}: {len(tests)} x {cause}", *tests]
                    shown = found[platform.name].get(tests[0])
                    lines += [shown.text if shown else "", ""]
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
