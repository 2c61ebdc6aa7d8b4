"""Each bug that is planted into the simulation is one line of its file: a stale one plants nothing,
which else is seen only when its turn comes."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/sim"))

import planted_bugs  # noqa: E402
import planted_server_bugs  # noqa: E402
from mutant import Mutant  # noqa: E402

PLANTED = [
    bug
    for module in (planted_bugs, planted_server_bugs)
    for group in vars(module).values()
    if isinstance(group, tuple)
    for bug in group
    if isinstance(bug, Mutant)
]


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_is_a_line_of_its_file(bug: Mutant) -> None:
    lines = [line.strip() for line in (ROOT / bug.file).read_text().splitlines()]
    assert lines.count(bug.line) == 1
