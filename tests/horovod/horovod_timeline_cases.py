"""What is in the timeline of each kind of operation, whoever comes late. Floor: tests."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import torch
from named_operation_cases import raises

import rdmacoll.horovod as hvd

LIMIT_S = 30
LATE_S = 0.3
Event = dict[str, Any]
Span = tuple[str, float, float, str]


def own_file(name: str) -> Path:
    return Path(f"{name}.{hvd.size()}.{hvd.rank()}.json")


class Rows:
    """The spans of each row: name, begin and end in microseconds, and what is said at the end."""

    def __init__(self, events: list[Event]) -> None:
        start, *events = events
        self.start_us = start["args"]["start_time_since_epoch_in_micros"]
        titles = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
        self.marks = [e["ts"] for e in events if e.get("name") == "CYCLE_START"]
        self.spans: dict[str, list[Span]] = {title: [] for title in titles.values()}
        self.count = len(titles)
        begun: dict[int, Event] = {}
        for event in events:
            if event["ph"] == "B":
                assert event["pid"] not in begun, f"{event} within {begun}"
                begun[event["pid"]] = event
            elif event["ph"] == "E":
                begin = begun.pop(event["pid"])
                assert begin["ts"] <= event["ts"]
                said = event.get("args", {}).get("state", "")
                span = (begin["name"], begin["ts"], event["ts"], said)
                self.spans[titles[event["pid"]]].append(span)
        assert not begun, begun

    def names(self, title: str) -> list[str]:
        return [name for name, *_ in self.spans[title]]


def rows_of(path: Path) -> Rows | None:
    """Of a complete file; None on other ranks than the first, which write none."""
    if hvd.rank() != 0:
        assert not path.exists()
        return None
    return Rows(json.loads(path.read_text()))


def unfinished(path: Path) -> str:
    """What is in a file that is being written, which readers take as it is."""
    text = path.read_text()
    json.loads(text + "]")
    return text


def wait_for_text(path: Path, text: str) -> None:
    end = time.monotonic() + LIMIT_S
    while text not in unfinished(path):
        assert time.monotonic() < end, f"no {text} in {path.read_text()}"
        time.sleep(0.005)


def case_timeline_of_every_kind() -> None:
    n = hvd.size()
    path = own_file("kinds")
    hvd.start_timeline(path)
    hvd.allreduce(torch.ones(3), name="a")
    hvd.allgather(torch.ones(1), name="b")
    hvd.broadcast(torch.ones(1), 0, name="c")
    hvd.alltoall(torch.ones(n), name="d")
    hvd.reducescatter(torch.ones(n), name="e")
    hvd.allreduce(torch.ones(3), name="a")
    hvd.barrier()
    hvd.join()
    hvd.stop_timeline()
    rows = rows_of(path)
    hvd.allreduce(torch.ones(3), name="later")
    if rows is None:
        return
    for title, kind, times in (
        ("allreduce.a", "ALLREDUCE", 2),
        ("allgather.b", "ALLGATHER", 1),
        ("broadcast.c", "BROADCAST", 1),
        ("alltoall.d", "ALLTOALL", 1),
        ("reducescatter.e", "REDUCESCATTER", 1),
        ("barrier.noname.0", "BARRIER", 1),
        ("join", "JOIN", 1),
    ):
        assert rows.names(title) == [f"NEGOTIATE_{kind}", kind] * times
        said = [state for *_, state in rows.spans[title]]
        assert said == ["", "done"] * times
    assert rows.count == len(rows.spans), "a name has one row"
    assert not rows.marks
    assert "allreduce.later" not in path.read_text()


def case_timeline_shows_for_whom_it_waits() -> None:
    path = own_file("late")
    hvd.start_timeline(str(path))
    hvd.barrier()
    last = hvd.rank() == hvd.size() - 1
    if last:
        time.sleep(LATE_S)
    hvd.allreduce(torch.ones(3), name="late")
    hvd.stop_timeline()
    if (rows := rows_of(path)) is None:
        return
    (_, asked, agreed, _), (_, begun, _, _) = rows.spans["allreduce.late"]
    assert agreed == begun
    assert last or (agreed - asked) / 1e6 > LATE_S / 3
    now_us = time.time() * 1e6 - rows.start_us
    assert 0 < asked < begun < now_us < LIMIT_S * 1e6


def case_timeline_marks_what_begins_together() -> None:
    path = own_file("marks")
    hvd.start_timeline(path, mark_cycles=True)
    for _ in range(3):
        handles = [hvd.allreduce_async(torch.ones(3), name=f"{i}") for i in range(8)]
        for handle in handles:
            hvd.synchronize(handle)
    hvd.stop_timeline()
    if (rows := rows_of(path)) is None:
        return
    spans = [span for of_row in rows.spans.values() for span in of_row]
    begins = {begin for name, begin, _, _ in spans if name == "ALLREDUCE"}
    assert sorted(rows.marks) == sorted(begins)
    assert len(spans) == 2 * 3 * 8


def case_timeline_of_what_is_in_flight() -> None:
    path = own_file("flight")
    hvd.start_timeline(path)
    hvd.barrier()
    if hvd.rank() == 0:
        handle = hvd.allreduce_async(torch.ones(3), name="flight")
        wait_for_text(path, "NEGOTIATE_ALLREDUCE")
        if hvd.size() == 1:
            hvd.synchronize(handle)
        hvd.stop_timeline()
        rows = rows_of(path)
        assert rows is not None
        if hvd.size() > 1:
            [(name, _, _, said)] = rows.spans["allreduce.flight"]
            assert (name, said) == ("NEGOTIATE_ALLREDUCE", "in flight")
    hvd.barrier()
    if hvd.rank() == 0:
        hvd.synchronize(handle)
    else:
        hvd.allreduce(torch.ones(3), name="flight")


def case_timeline_started_again_is_another() -> None:
    first, second = own_file("first"), own_file("second")
    hvd.start_timeline(first)
    hvd.allreduce(torch.ones(3), name="one")
    if hvd.rank() == 0:
        raises(OSError, lambda: hvd.start_timeline("absent/file"), "start_timeline('absent/file')")
        raises(OSError, lambda: hvd.start_timeline("absent/file"), "name a file in a folder that")
        raises(ValueError, lambda: hvd.start_timeline(""), "name a file")
    hvd.allreduce(torch.ones(3), name="two")  # in the first still
    hvd.start_timeline(second)
    hvd.allreduce(torch.ones(3), name="three")
    rows = rows_of(first)
    hvd.shutdown()
    raises(ValueError, lambda: hvd.start_timeline(first), "use hvd.init()")
    raises(ValueError, hvd.stop_timeline, "use hvd.init()")
    hvd.init()
    hvd.stop_timeline()  # there is none any more
    if rows is not None:
        assert list(rows.spans) == ["allreduce.one", "allreduce.two"]
        others = rows_of(second)
        assert others is not None and list(others.spans) == ["allreduce.three"]


def case_timeline_of_the_variables() -> None:
    path, is_first = own_file("variables"), hvd.rank() == 0
    hvd.shutdown()
    os.environ.update(HOROVOD_TIMELINE=str(path), HOROVOD_TIMELINE_MARK_CYCLES="1")
    hvd.init()
    del os.environ["HOROVOD_TIMELINE"], os.environ["HOROVOD_TIMELINE_MARK_CYCLES"]
    hvd.allreduce(torch.ones(3), name="x")
    hvd.shutdown()
    assert path.exists() == is_first
    if is_first:
        rows = Rows(json.loads(path.read_text()))
        assert rows.names("allreduce.x") == ["NEGOTIATE_ALLREDUCE", "ALLREDUCE"]
        assert len(rows.marks) == 1
    hvd.init()
    hvd.barrier()


def case_timeline_of_what_fails() -> None:
    if hvd.size() == 1:
        return
    path = own_file("fails")
    hvd.start_timeline(path)
    own = torch.ones(3 + hvd.rank())
    raises(hvd.HorovodInternalError, lambda: hvd.allreduce(own, name="bad"), "shapes")
    hvd.stop_timeline()
    if (rows := rows_of(path)) is not None:
        [(name, _, _, said)] = rows.spans["allreduce.bad"]
        assert (name, said) == ("NEGOTIATE_ALLREDUCE", "failed")


def case_timeline_of_process_sets_and_without_names() -> None:
    path = own_file("sets")
    ranks = list(range(hvd.size() - 1))
    some = hvd.add_process_set(ranks) if ranks else hvd.global_process_set
    hvd.start_timeline(path)
    if some.included():
        hvd.allreduce(torch.ones(3), name="x", process_set=some)
    hvd.allreduce(torch.ones(3), name="x")
    for _ in range(2):
        hvd.allreduce(torch.ones(3))
    hvd.stop_timeline()
    if (rows := rows_of(path)) is None:
        return
    titles = {"allreduce.x", "allreduce.noname.0", "allreduce.noname.1"}
    if ranks:
        titles.add(f"allreduce.x (ranks {', '.join(map(str, ranks))})")
    assert set(rows.spans) == titles


def case_timeline_of_an_optimizer() -> None:
    path = own_file("optimizer")
    model = torch.nn.Linear(4, 2)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), groups=[[model.weight], [model.bias]]
    )
    hvd.start_timeline(path, mark_cycles=True)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
    hvd.stop_timeline()
    if (rows := rows_of(path)) is None:
        return
    for bucket in range(2):
        title = f"allreduce.gradients.0.bucket.{bucket}"
        assert rows.names(title) == ["ALLREDUCE"] * 3
        assert [said for *_, said in rows.spans[title]] == ["done"] * 3
    assert not rows.marks, "nothing was asked"
