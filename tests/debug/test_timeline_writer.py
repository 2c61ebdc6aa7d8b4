"""The timeline that a rank writes while it runs, of dumps made by hand."""

import json
import time
from pathlib import Path

import pytest
from made_dumps import collective, text_of

from rdmacoll.debug.timeline_writer import TimelineWriter

LIMIT_S = 30


def names_in(path: Path) -> list[str]:
    events = json.loads(path.read_text())
    return [event["name"] for event in events if event["ph"] == "X"]


def write(path: Path, *dumps: str) -> None:
    """One dump for each look; the last one for the look at the end, too."""
    left = list(dumps)
    writer = TimelineWriter(lambda: left.pop(0) if len(left) > 1 else left[0], str(path))
    end = time.monotonic() + LIMIT_S
    while len(left) > 1:
        assert time.monotonic() < end
        time.sleep(0.01)
    writer.close()


def test_each_is_written_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = text_of(0, 1, collective(1), collective(2), collective(3, "running"))
    second = text_of(0, 1, collective(2), collective(3), collective(4, "running"))
    write(tmp_path / "trace.json", first, second)
    assert names_in(tmp_path / "trace-0.json") == [f"all_reduce #{n}" for n in (1, 2, 3, 4)]
    assert capfd.readouterr().err == ""


def test_what_was_forgotten_is_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = text_of(2, 3, collective(1), collective(2))
    second = text_of(2, 3, collective(7), collective(8))
    write(tmp_path / "{rank}.json", first, second)
    assert names_in(tmp_path / "2.json") == [f"all_reduce #{n}" for n in (1, 2, 7, 8)]
    said = capfd.readouterr().err
    assert "lacks 4 collectives" in said and "raise RDMACOLL_FLIGHT_RECORDS" in said


def test_nothing_is_written_without_a_group(tmp_path: Path) -> None:
    write(tmp_path / "trace", "")
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "absent" / "trace", text_of(0, 1, collective(1)))
    assert "RDMACOLL_TIMELINE: [Errno 2]" in capfd.readouterr().err


def test_a_recorder_that_is_no_dump(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What was written before stays a trace."""
    write(tmp_path / "trace.json", text_of(0, 1, collective(1)), "{")
    assert names_in(tmp_path / "trace-0.json") == ["all_reduce #1"]
    said = capfd.readouterr().err
    assert said.startswith("rdmacoll: RDMACOLL_TIMELINE: not a whole dump: ")
    assert said.count("\n") == 1
