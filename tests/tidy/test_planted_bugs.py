"""Each bug that is planted into the simulation is one line of its file: a stale one plants nothing,
which else is seen only when its turn comes."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/sim"))
PLANTED: list[Any] = [
    *import_module("planted_bugs").ENGINE,
    *import_module("planted_server_bugs").SERVERS,
    *import_module("planted_name_bugs").NAMES,
]


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_is_a_line_of_its_file(bug: Any) -> None:
    lines = [line.strip() for line in (ROOT / bug.file).read_text().splitlines()]
    assert lines.count(bug.line) == 1
