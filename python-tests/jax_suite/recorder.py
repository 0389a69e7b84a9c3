"""A pytest plugin: writes what becomes of each test into a file as it happens, so that a process that dies
takes only the test with it that it died in.

Configured by environment variables, as pytest's own configuration belongs to JAX's checkout:
``JAX_SUITE_LOG`` is the file, one JSON object per line; ``JAX_SUITE_SAMPLE`` the most tests to run of a file
(0: all); ``JAX_SUITE_ONLY`` a file with the names of the tests to run, one per line, if set.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

_LOG = Path(os.environ["JAX_SUITE_LOG"])

# Characters of a failure's text that are kept: its end, where the exception is.
_TEXT = 6000


def _write(**entry: Any) -> None:
    with _LOG.open("a") as log:
        log.write(json.dumps(entry) + "\n")


def _drawn(name: str) -> bytes:
    """An order of the tests that does not follow the file's, the same on every platform."""
    return hashlib.sha256(name.encode()).digest()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the sample, without what an earlier process has finished."""
    finished = set()
    if _LOG.exists():
        finished = {json.loads(line)["test"] for line in _LOG.read_text().splitlines()}
    only = os.environ.get("JAX_SUITE_ONLY")
    chosen = {item.nodeid for item in items}
    if only:
        chosen &= set(Path(only).read_text().splitlines())
    elif sample := int(os.environ.get("JAX_SUITE_SAMPLE", "0")):
        chosen = set(sorted(chosen, key=_drawn)[:sample])
    kept = [item for item in items if item.nodeid in chosen - finished]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot be imported counts as one test that fails, or is skipped."""
    if report.outcome != "passed":
        _write(test=report.nodeid, outcome=report.outcome, seconds=0, text=_end(report))


def pytest_runtest_logstart(nodeid: str) -> None:
    """Says which test runs, in case that the process does not survive it."""
    _write(test=nodeid, outcome="started")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """One line per test: its call, or where it did not come to that, its setup."""
    if report.when == "call" or report.outcome != "passed":
        outcome = "skipped" if hasattr(report, "wasxfail") and report.outcome == "skipped" else report.outcome
        _write(test=report.nodeid, outcome=outcome, seconds=report.duration, text=_end(report))


def _end(report: pytest.CollectReport | pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    return "" if report.outcome == "passed" else report.longreprtext[-_TEXT:]
