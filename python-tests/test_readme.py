"""README.md tells the truth: every command in it is run, and every file and variable it names exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HERE

ROOT = HERE.parent
README = (ROOT / "README.md").read_text()

# ci/test is what runs this; it starts with ci/demo.
RUN_BY_CI = ("ci/demo", "ci/test")


def commands() -> list[str]:
    """The lines of README's shell blocks, without their comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    lines = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and line not in RUN_BY_CI]


@pytest.mark.parametrize("command", commands())
def test_command_works(command: str, tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "ACT_DUMP_DIR": str(tmp_path)}
    process = subprocess.run(
        ["bash", "-euc", command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout


def test_commands_at_the_top_are_those_of_ci() -> None:
    first = re.search(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert first
    assert [line.split()[0] for line in first.group(1).splitlines()] == list(RUN_BY_CI)
    assert "ci/demo" in (ROOT / "ci" / "test").read_text()
    assert "ci/test" in (ROOT / ".ci" / "run").read_text()


def test_python_block_runs() -> None:
    block = re.search(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert block
    environment = os.environ | {"JAX_PLATFORMS": "act"}
    code = block.group(1).replace("act_pjrt.is_act", "assert act_pjrt.is_act")
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=600)


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), target


def test_every_crate_has_its_chapter() -> None:
    architecture = (ROOT / "ARCHITECTURE.md").read_text()
    members = re.search(r"members = \[(.*?)\]", (ROOT / "Cargo.toml").read_text())
    assert members
    for member in re.findall(r'"(.+?)"', members.group(1)):
        chapter = re.search(rf"^### `{member}`.*?(?=^##)", architecture, re.MULTILINE | re.DOTALL)
        assert chapter, member
        assert "**Invariant:" in chapter.group(0), member
