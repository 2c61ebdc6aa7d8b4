"""docs/START.md: its programs, started by the lines below them, print what it says."""

import re
from pathlib import Path

from test_examples import only_for_ours, run  # noqa: F401  (a fixture of all tests here)

PAGE = (Path(__file__).parents[2] / "docs/START.md").read_text()


def start(name: str, folder: Path) -> str:
    """The program that the page calls so, started as the line below it says."""
    after = PAGE[PAGE.index(f"`{name}`") :]
    program = re.search(r"^```python\n(.*?)^```$", after, re.MULTILINE | re.DOTALL)
    line = re.search(rf"^    rdmarun -np (\d) {re.escape(name)}$", after, re.MULTILINE)
    assert program and line, f"docs/START.md does not have {name} and how it is started"
    script = folder / name
    script.write_text(program[1])
    return run("rdmarun", line[1], str(script), folder=folder)


def test_hello(tmp_path: Path) -> None:
    said = start("hello.py", tmp_path)
    shown = re.findall(r"^    (\[\d\]: rank .*)$", PAGE, re.MULTILINE)
    assert len(shown) == 4
    assert sorted(line for line in said.splitlines() if ": rank" in line) == sorted(shown)


def test_train(tmp_path: Path) -> None:
    said = start("train.py", tmp_path)
    losses = [float(loss) for loss in re.findall(r"step \d: loss (\d+\.\d+)", said)]
    assert len(losses) == 10
    assert losses[-1] < losses[0] / 10
    assert f"{losses[0]:.4f}" in PAGE and f"{losses[-1]:.4f}" in PAGE
