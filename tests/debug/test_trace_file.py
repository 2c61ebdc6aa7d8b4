"""A trace that grows, on disks that are full."""

import json
import os
from pathlib import Path

import pytest

from rdmacoll.debug import trace_file
from rdmacoll.debug.trace_file import Event, TraceFile


def test_it_is_a_trace_at_any_time(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    trace = TraceFile(path)
    assert json.loads(path.read_text() + "]") == []
    trace.write([])
    written: list[Event] = []
    for number in range(3):
        events: list[Event] = [{"name": 'a "name"', "ts": number}, {"ts": -number}]
        trace.write(events)
        written += events
        assert json.loads(path.read_text() + "]") == written
    trace.close()
    trace.close()
    assert json.loads(path.read_text()) == written
    trace = TraceFile(path)
    trace.close()
    assert json.loads(path.read_text()) == []


def test_a_full_disk_leaves_what_came_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace"
    trace = TraceFile(path)
    trace.write([{"ts": 1}])
    write = os.write
    calls = []

    def half(fd: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return write(fd, data[: len(data) // 2] if len(calls) == 1 else data)

    monkeypatch.setattr(trace_file.os, "write", half)
    with pytest.raises(OSError, match=f"No space left on device: '{path}'"):
        trace.write([{"ts": 2}])
    trace.close()
    assert json.loads(path.read_text()) == [{"ts": 1}]


def test_a_device_is_written_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "what stands for a descriptor"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    trace = TraceFile(Path(f"/dev/fd/{fd}"))
    trace.write([{"ts": 1}])
    trace.close()
    os.close(fd)  # is open still
    assert json.loads(path.read_text()) == [{"ts": 1}]


def test_a_file_that_cannot_be_made(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "trace"
    with pytest.raises(FileNotFoundError, match=str(path)):
        TraceFile(path)
