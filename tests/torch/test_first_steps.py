"""docs/START.md: its programs, started by the lines below them, print what it says."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from world import backend

PAGE = (Path(__file__).parents[2] / "docs/START.md").read_text()
BIN = Path(sys.executable).parent


@pytest.fixture(autouse=True)
def only_for_ours() -> None:
    if backend() != "rdma":
        pytest.skip("the page names its backend")


def program_and_line(name: str) -> tuple[str, list[str]]:
    """The program that the page calls so, and the arguments of its rdmarun."""
    after = PAGE[PAGE.index(f"`{name}`") :]
    program = re.search(r"^```python\n(.*?)^```$", after, re.MULTILINE | re.DOTALL)
    line = re.search(rf"^    rdmarun (.*{re.escape(name)})$", after, re.MULTILINE)
    assert program and line, f"docs/START.md does not have {name} and how it is started"
    return program[1], shlex.split(line[1])


def run(name: str, folder: Path) -> str:
    program, arguments = program_and_line(name)
    (folder / name).write_text(program)
    finished = subprocess.run(
        [BIN / "rdmarun", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


def test_hello(tmp_path: Path) -> None:
    said = run("hello.py", tmp_path)
    shown = re.findall(r"^    (\[\d\]: rank .*)$", PAGE, re.MULTILINE)
    assert len(shown) == 4
    assert sorted(line for line in said.splitlines() if ": rank" in line) == sorted(shown)


def test_train(tmp_path: Path) -> None:
    said = run("train.py", tmp_path)
    losses = [float(loss) for loss in re.findall(r"step \d: loss (\d+\.\d+)", said)]
    assert len(losses) == 10
    assert losses[-1] < losses[0] / 10
    assert f"{losses[0]:.4f}" in PAGE and f"{losses[-1]:.4f}" in PAGE
