"""What `rdmacoll debug` says of remote memory, and that it takes no session for a group."""

import json
import pickle
from pathlib import Path

import pytest
from made_dumps import (
    WITH_ANY,
    WITH_RANK_1,
    collective,
    dump_of,
    remote,
    text_of,
    waits,
    with_sessions,
)

from rdmacoll.debug.dumps import BadDump, Dump
from rdmacoll.debug.text import lines
from rdmacoll.debug.timeline import write_timeline
from rdmacoll.debug.timeline_writer import TimelineWriter
from rdmacoll.debug.to_torch import write_for_torch


def said(*dumps: Dump) -> str:
    return "\n".join(lines(dumps))


def reader(*operations: dict[str, object], **changes: object) -> Dump:
    return with_sessions(text_of(0, 2, *operations), WITH_RANK_1 | changes, WITH_ANY)


def test_what_hangs_is_said_with_whom_and_for_how_long() -> None:
    text = said(
        reader(
            remote(10, "read", "running", bytes=4096),
            remote(11, "fence", "queued"),
            remote(12, "wait_notify", "running", group=3),
            waits("meet", "rank 5"),
        )
    )
    assert "rank 0: remote read of 4 KB, session with rank 1 (tcp), for 10.0 s\n" in text
    assert "remote fence, session with rank 1 (tcp), for 9.0 s; behind others" in text
    assert "rank 0: remote wait_notify, with any process, for 8.0 s" in text
    assert "rank 0: remote meet, with rank 5, for 20.0 s" in text
    assert "and 1 more" in text  # in the table
    assert "has ended" not in text


def test_what_has_ended_is_not_shown() -> None:
    assert "remote" not in said(reader(remote(1, "read"), remote(2, "open", "failed")))


def test_who_is_gone_is_said() -> None:
    assert "ended" not in said(reader(remote(1, "read"), ended=True, failure=""))
    text = said(reader(remote(1, "read", "failed"), ended=True, failure="rank 1 is gone: reset"))
    assert "rank 0: its session with rank 1 has ended: rank 1 is gone: reset" in text


def test_a_session_is_no_group() -> None:
    """Its operations have numbers of their own, which no rank misses."""
    hangs = reader(collective(1), remote(2, "read", "running"), remote(3, "open", "queued"))
    text = said(hangs, dump_of(1, 2, collective(1)))
    assert text.count("group") == 1
    assert "no collective is in flight; the last was #1" in text
    assert "point-to-point" not in text
    assert "MISSING" not in text and "UNKNOWN" not in text


def test_torch_is_given_groups_alone(tmp_path: Path) -> None:
    write_for_torch([reader(collective(1), remote(1, "read"))], tmp_path)
    written = pickle.loads((tmp_path / "rdmacoll_rank_0").read_bytes())
    assert [entry["collective_seq_id"] for entry in written["entries"]] == [1]
    assert list(written["pg_config"]) == ["0"]


def test_sessions_have_tracks_of_their_own(tmp_path: Path) -> None:
    dump = reader(remote(1, "read"), waits("meet", "rank 5"))
    write_timeline([dump], tmp_path / "trace")
    events = json.loads((tmp_path / "trace").read_text())["traceEvents"]
    tracks = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    assert tracks["session with rank 1"] == 2 and tracks["session with any process"] == 3
    assert [(e["ph"], e["tid"], e["name"]) for e in events if e["ph"] in "be"] == [
        ("b", 2, "remote_read #1"),
        ("e", 2, "remote_read #1"),
    ]


def test_a_running_rank_s_timeline_counts_none_of_them_as_missing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(text_of(0, 1, remote(1, "read"), remote(9, "read")))
    text = json.dumps(data | {"sessions": [WITH_RANK_1]})
    TimelineWriter(lambda: text, str(tmp_path / "trace.json")).close()
    events = json.loads((tmp_path / "trace-0.json").read_text())
    assert {e["name"] for e in events if e["ph"] == "b"} == {"remote_read #1", "remote_read #9"}
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("changes", [{"id": "2"}, {"with": 7}, {"ended": 1}, {"failure": []}])
def test_a_malformed_session_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(BadDump):
        with_sessions(text_of(0, 2), WITH_RANK_1 | changes)


def test_a_name_can_move_no_cursor() -> None:
    text = said(reader(remote(1, "read", "running"), **{"with": "\033[2Jrank 1"}))
    assert "\033" not in text and "\\x1b[2Jrank 1" in text
