"""What `rdmacoll debug` makes of the dumps of a job's ranks."""

import json
from pathlib import Path

import pytest
from made_dumps import NOW_NS, SECOND_NS, collective, dump_of, moved

from rdmacoll.base.rank_numbers import ranks_text
from rdmacoll.debug.dumps import BadDump, Dump, parse, read_folder
from rdmacoll.debug.text import lines


def said(*dumps: Dump) -> str:
    return "\n".join(lines(dumps))


def test_who_has_not_called_it_is_named() -> None:
    done = [collective(1), collective(2)]
    text = said(
        dump_of(0, 3, *done, collective(3, "running")),
        dump_of(1, 3, *done, collective(3, "running")),
        dump_of(2, 3, *done),
    )
    assert "in all_reduce #3 (3.906 KB, Float32, Sum, one_shot) for 17.0 s: ranks 0, 1" in text
    assert "MISSING: rank 2 has not called #3; its last was all_reduce #2" in text
    assert "ended 17.0 s ago" in text
    assert "MISMATCH" not in text


def test_who_has_called_nothing_is_named() -> None:
    text = said(dump_of(0, 2, collective(1, "running")), dump_of(1, 2))
    assert "MISSING: rank 1 has not called #1; it has called none yet" in text


def test_who_did_not_answer_is_not_blamed() -> None:
    text = said(dump_of(0, 3, collective(1, "running")), dump_of(2, 3, collective(1, "running")))
    assert "UNKNOWN: rank 1 did not answer" in text
    assert "MISSING" not in text


@pytest.mark.parametrize(
    ("changes", "agree"),
    [
        ({"operation": "broadcast"}, False),
        ({"bytes": 8000}, False),
        ({"dtype": "Int32"}, False),
        ({"root": 1}, False),
        ({"state": "queued"}, True),
    ],
)
def test_ranks_in_different_operations(changes: dict[str, object], agree: bool) -> None:
    running = collective(1, "running")
    text = said(dump_of(0, 2, running), dump_of(1, 2, running | changes))
    assert ("MISMATCH" not in text) == agree


def test_a_share_of_one_s_own_is_no_mismatch() -> None:
    mine = [collective(1, "running", operation="gather", bytes=n) for n in (400, 100)]
    assert "MISMATCH" not in said(dump_of(0, 2, mine[0]), dump_of(1, 2, mine[1]))


def test_what_failed_counts_as_not_done() -> None:
    text = said(
        dump_of(0, 2, collective(1), collective(2, "failed"), failure="Timed out"),
        dump_of(1, 2, collective(1)),
    )
    assert "rank 0 failed: Timed out" in text
    assert "MISSING: rank 1 has not called #2" in text


def test_who_is_ahead_is_said() -> None:
    text = said(
        dump_of(0, 3, collective(7, "running", operation="broadcast")),
        dump_of(1, 3, collective(7, operation="broadcast")),
        dump_of(2, 3, collective(9)),  # it has forgotten #7
    )
    assert "done with it: ranks 1, 2" in text
    assert "MISSING" not in text


def test_all_is_well() -> None:
    text = said(*(dump_of(rank, 2, collective(1)) for rank in range(2)))
    assert "no collective is in flight; the last was #1" in text


def test_a_receive_that_nobody_answers() -> None:
    waits = moved(1, "recv", "queued") | {"peer": 1, "tag": 4}
    text = said(dump_of(0, 2, waits), dump_of(1, 2))
    assert "rank 0 receives from rank 1: 3.906 KB, tag 4" in text
    assert "MISSING: rank 1 has no such send in flight" in text
    answers = moved(1, "send", "queued") | {"peer": 0, "tag": 4}
    assert "MISSING" not in said(dump_of(0, 2, waits), dump_of(1, 2, answers))


def test_groups_that_were_left_are_not_shown() -> None:
    assert "group" not in said(dump_of(0, 1, collective(1), left=True))


def test_ranks_text() -> None:
    assert ranks_text([3]) == "rank 3"
    assert ranks_text([1, 0]) == "ranks 0, 1"
    assert ranks_text([7, 0, 1, 2, 3]) == "ranks 0-3, 7"


def test_times_are_put_on_the_wall_s_clock() -> None:
    assert dump_of(0, 1).wall(NOW_NS - SECOND_NS) == NOW_NS + 6 * SECOND_NS


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "another"}'])
def test_what_is_no_dump(text: str) -> None:
    with pytest.raises(BadDump):
        parse(text)


def test_a_folder_gives_the_newest_of_each_process(tmp_path: Path) -> None:
    data = {"format": "rdmacoll flight recorder 1", "pid": 5, "rank": 0, "host": "h"}
    data |= {"clock_ns": 0, "left_out": 0, "groups": [], "in_flight": [], "ended": []}
    for name, wall_ns in (("-error1", 10), ("", 30), ("-error2", 20)):
        newer = {**data, "wall_ns": wall_ns, "reason": name}
        (tmp_path / f"rdmacoll-rank0-pid5{name}.json").write_text(json.dumps(newer))
    (tmp_path / "rdmacoll-rank1-pid6.json").write_text("{")
    dumps, problems = read_folder(tmp_path)
    assert [dump.wall_ns for dump in dumps] == [30]
    assert len(problems) == 1
