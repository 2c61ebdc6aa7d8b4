"""The command as a user calls it, in this process: what it printed, its errors, its JSON."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from rdmacoll.__main__ import main

Plan = Callable[[str], str]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("RDMACOLL_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def plan(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Arguments -> what is printed."""

    def run(arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["rdmacoll", "plan", *shlex.split(arguments)])
        assert main() == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def data(plan: Plan) -> Callable[[str], dict[str, Any]]:
    """Arguments -> what --json prints."""
    return lambda arguments: json.loads(plan(arguments + " --json"))


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str], plan: Plan) -> Plan:
    """Arguments that are wrong -> what it says of them."""

    def run(arguments: str) -> str:
        with pytest.raises(SystemExit) as left:
            plan(arguments)
        assert left.value.code == 2
        said = capsys.readouterr()
        assert not said.out
        return said.err.partition("error: ")[2]

    return run
