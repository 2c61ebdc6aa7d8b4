"""The command line of tests/guest.

Floor: tests.
"""

import sys

import pytest

from guest.__main__ import parse
from guest.boot import Settings


@pytest.mark.parametrize(
    ("arguments", "settings", "command"),
    [
        (["ls | wc"], Settings(), "ls | wc"),
        (["ls", "a b"], Settings(), "ls 'a b'"),
        (["--devices", "2", "ls", "--all"], Settings(devices=2), "ls --all"),
        (["--guests=2", "--", "--odd"], Settings(guests=2), "--odd"),
        (["--timeout", "1.5", "--cpus=1", "id"], Settings(timeout_s=1.5, cpus=1), "id"),
    ],
)
def test_parse(arguments: list[str], settings: Settings, command: str) -> None:
    assert parse(arguments) == (settings, command)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--devices", "0", "id"], "--devices 0: 1 to 9"),
        (["--guests", "3", "id"], "invalid choice: 3"),
        (["--guests", "2", "--devices", "2", "id"], "not allowed with"),
        (["--memory", "64", "id"], "--memory of 512"),
        ([], "a shell needs a terminal"),
    ],
)
def test_refused(
    arguments: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)
    with pytest.raises(SystemExit):
        parse(arguments)
    assert complaint in capsys.readouterr().err
