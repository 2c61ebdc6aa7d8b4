"""The trace for Perfetto."""

import json
from pathlib import Path
from typing import Any

from made_dumps import NOW_NS, SECOND_NS, collective, dump_of, moved

from rdmacoll.debug.dumps import Dump
from rdmacoll.debug.timeline import write_timeline


def events_of(path: Path, *dumps: Dump) -> list[dict[str, Any]]:
    write_timeline(dumps, path)
    events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return [event for event in events if event["ph"] != "M"]


def test_queued_and_running(tmp_path: Path) -> None:
    waited = collective(1) | {"queued_ns": NOW_NS - 20 * SECOND_NS}
    events = events_of(tmp_path / "trace", dump_of(3, 4, waited))
    begin, end, running = events
    assert (begin["ph"], end["ph"], running["ph"]) == ("b", "e", "X")
    assert end["ts"] == running["ts"] == begin["ts"] + 1e6
    assert running["dur"] == 1e6
    assert {event["pid"] for event in events} == {3}
    assert running["name"] == "all_reduce #1"


def test_what_is_in_flight_lasts_until_the_dump(tmp_path: Path) -> None:
    running, *queued = events_of(
        tmp_path / "trace", dump_of(0, 1, collective(10, "running"), collective(11, "queued"))
    )
    assert running["dur"] == 10e6
    assert queued[1]["ts"] == running["ts"] + running["dur"]


def test_point_to_point_overlaps(tmp_path: Path) -> None:
    events = events_of(tmp_path / "trace", dump_of(0, 1, moved(1, "send"), moved(2, "recv")))
    assert {event["ph"] for event in events} == {"b", "e"}
    assert len({event["id"] for event in events}) == 2
