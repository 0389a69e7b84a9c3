"""What became of tests: read from the recorder's log, counted, written as JUnit XML, compared."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """How one test ended: passed, failed, skipped, crashed (the process with it) or stopped (out of time)."""

    outcome: str
    seconds: float
    text: str


Outcomes = dict[str, Outcome]

# What a failure that only names the exception's type would hide: the line where pytest repeats the exception.
_EXCEPTION = re.compile(r"^E\s+(\S.*)$", re.MULTILINE)
# Numbers, addresses and quoted names differ between tests that fail for one reason.
_PARTICULAR = re.compile(r"0x[0-9a-f]+|\d+(\.\d+)?|'[^']*'|\"[^\"]*\"")


def read(log: Path) -> Outcomes:
    """The outcomes so far. A test that was started only is not among them: see :func:`unfinished`."""
    found: Outcomes = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        entry = json.loads(line)
        if entry["outcome"] == "started":
            continue
        before = found.get(entry["test"])
        # A teardown that fails after a call that passed, or the other way round: the failure counts.
        if before is None or before.outcome == "passed":
            found[entry["test"]] = Outcome(entry["outcome"], entry.get("seconds", 0.0), entry.get("text", ""))
    return found


def unfinished(log: Path) -> str | None:
    """The test that was started and never ended, if there is one."""
    finished = read(log)
    lines = log.read_text().splitlines() if log.exists() else []
    started = [entry["test"] for entry in map(json.loads, lines) if entry["outcome"] == "started"]
    return next((test for test in reversed(started) if test not in finished), None)


def counts(outcomes: Outcomes) -> Counter[str]:
    """How many tests ended in which way."""
    return Counter(outcome.outcome for outcome in outcomes.values())


def cause(outcome: Outcome) -> str:
    """What tests that fail for the same reason have in common."""
    if outcome.outcome in ("crashed", "stopped"):
        return f"{outcome.outcome}: {outcome.text}"
    lines = [line for line in _EXCEPTION.findall(outcome.text) if not line.startswith(("assert ", "+ ", "|"))]
    # The first line names the exception; the ones that follow are its message's other lines.
    said = lines[0] if lines else (outcome.text.strip().splitlines() or ["no text"])[-1]
    return f"{outcome.outcome}: {_PARTICULAR.sub('…', said)[:160]}"


def regressions(cpu: Outcomes, act: Outcomes) -> dict[str, list[str]]:
    """Tests that pass on cpu and do not on act, skips included, by cause; the most frequent cause first."""
    by_cause: dict[str, list[str]] = defaultdict(list)
    for test, outcome in cpu.items():
        mine = act.get(test, Outcome("stopped", 0.0, "not reached in the time given"))
        if outcome.outcome == "passed" and mine.outcome != "passed":
            by_cause[cause(mine)].append(test)
    for test in act.keys() - cpu.keys():
        # A file that can be imported on cpu only.
        if act[test].outcome != "passed":
            by_cause[cause(act[test])].append(test)
    return dict(sorted(by_cause.items(), key=lambda item: (-len(item[1]), item[0])))


def write_junit(outcomes: Outcomes, suite: str, path: Path) -> None:
    """One JUnit file, as continuous integration systems read it."""
    number = counts(outcomes)
    root = ElementTree.Element(
        "testsuite",
        name=suite,
        tests=str(len(outcomes)),
        failures=str(number["failed"]),
        errors=str(number["crashed"] + number["stopped"]),
        skipped=str(number["skipped"]),
    )
    tags = {"failed": "failure", "skipped": "skipped", "crashed": "error", "stopped": "error"}
    for test, outcome in outcomes.items():
        classname, _, name = test.rpartition("::")
        case = ElementTree.SubElement(
            root, "testcase", classname=classname, name=name, time=f"{outcome.seconds:.3f}"
        )
        if outcome.outcome in tags:
            # Control characters that XML 1.0 does not allow stand in some failures' texts.
            text = re.sub(r"[^\t\n\x20-\ud7ff\ue000-\ufffd]", "?", outcome.text)
            ElementTree.SubElement(case, tags[outcome.outcome], message=cause(outcome)).text = text
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
