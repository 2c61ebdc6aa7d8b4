"""`rdmacoll top`: what it makes of two dumps of each rank, and a job that is looked at."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from job_runner import Jobs
from made_dumps import NOW_NS, SECOND_NS, collective, dump_of

from rdmacoll.debug.dumps import Dump
from rdmacoll.top.samples import Sample, process_of, samples
from rdmacoll.top.screen import LEAST_WAIT_S, late, summary

MS = 1_000_000
SPAN_S = 4
BEGIN_NS = NOW_NS - SPAN_S * SECOND_NS


def before(now: Dump) -> Dump:
    """The same rank, earlier; it remembers what had been called by then."""
    earlier = NOW_NS - now.clock_ns + BEGIN_NS
    known = tuple(one for one in now.operations if one.queued_ns < earlier)
    return replace(now, clock_ns=earlier, wall_ns=now.wall(earlier), operations=known)


def call(sequence: int, at_ns: int, takes_ns: int, **changes: Any) -> dict[str, Any]:
    """takes_ns: 0 while it is in flight."""
    ended_ns = at_ns + takes_ns if takes_ns else 0
    state = "done" if takes_ns else "running"
    times = {"queued_ns": at_ns, "started_ns": at_ns, "ended_ns": ended_ns}
    return collective(sequence, state, **times, **changes)


def shown(*dumps: Dump) -> list[Sample]:
    return samples({process_of(one): before(one) for one in dumps}, dumps)


def rank(number: int, world: int, *operations: dict[str, Any]) -> Dump:
    """With one operation of long ago, so that nothing is forgotten."""
    return dump_of(number, world, call(1, BEGIN_NS - SECOND_NS, SECOND_NS // 2), *operations)


def test_rates_and_shares_of_a_rank() -> None:
    (one,) = shown(
        rank(
            0,
            1,
            call(2, BEGIN_NS + SECOND_NS, SECOND_NS, bytes=10**9),
            call(3, BEGIN_NS + SECOND_NS * 3 // 2, SECOND_NS, bytes=10**9),  # overlaps
            call(4, NOW_NS - SECOND_NS // 2, 0),
        )
    )
    assert one.per_s == 2 / SPAN_S
    assert one.gb_per_s == pytest.approx(2 / SPAN_S)
    assert one.share == pytest.approx((1.5 + 0.5) / SPAN_S)
    assert one.now is not None and one.now.sequence == 4
    assert one.now_s == pytest.approx(0.5)


def test_what_began_before_counts_from_there_on() -> None:
    (one,) = shown(rank(0, 1, call(2, BEGIN_NS - SECOND_NS // 4, SECOND_NS // 2)))
    assert one.share == pytest.approx(0.25 / SPAN_S)
    assert one.per_s == 1 / SPAN_S


def test_a_rank_that_forgets_is_measured_over_what_it_remembers() -> None:
    operations = [call(n, NOW_NS - (10 - n) * 100 * MS, 50 * MS) for n in range(5, 10)]
    now = dump_of(0, 1, *operations)
    known = replace(before(now), operations=rank(0, 1).operations)
    (one,) = samples({process_of(now): known}, [now])
    assert one.per_s == pytest.approx(4 / 0.45)  # since the end of the first


def test_the_rank_that_the_others_wait_for() -> None:
    calls = [BEGIN_NS + n * 100 * MS for n in range(1, 6)]
    early = [call(n, at, 40 * MS) for n, at in enumerate(calls, 2)]
    behind = [call(n, at + 30 * MS, 10 * MS) for n, at in enumerate(calls, 2)]
    found = shown(rank(0, 3, *early), rank(1, 3, *behind), rank(2, 3, *early))
    assert [one.late_ms for one in found] == [0.0, pytest.approx(30.0), 0.0]
    assert late(found) is found[1]
    assert summary(found, [], is_whole=True) == ["rank 1 is late: it comes 30.0 ms after the first"]


def test_the_rank_that_does_not_come() -> None:
    waiting = call(2, NOW_NS - 5 * SECOND_NS, 0)
    dumps = [rank(0, 4, waiting), rank(1, 4), rank(2, 4, waiting)]
    name = dumps[0].in_flight[0].name
    (line,) = summary(shown(*dumps), dumps, is_whole=False)
    assert line.startswith(f"in {name} "), line
    assert line.endswith(" #2 for 5.0 s: ranks 0, 2; not yet: rank 1; no answer: rank 3"), line


def test_a_short_wait_is_none() -> None:
    dumps = [rank(0, 2, call(2, NOW_NS - SECOND_NS // 2, 0)), rank(1, 2)]
    assert summary(shown(*dumps), dumps, is_whole=True) == ["no rank is late alone"]
    assert summary(shown(*dumps), dumps, is_whole=False) == []


def test_nobody_is_late_where_a_rank_is_not_seen_or_all_come_alike() -> None:
    early = call(2, BEGIN_NS + 100 * MS, 40 * MS)
    behind = call(2, BEGIN_NS + 130 * MS, 10 * MS)
    assert [one.late_ms for one in shown(rank(0, 3, early), rank(1, 3, behind))] == [None, None]
    found = shown(rank(0, 2, early), rank(1, 2, early))
    assert late(found) is None
    assert summary(found, [], is_whole=True) == ["no rank is late alone"]


def test_a_rank_that_was_not_there_before_is_left_out() -> None:
    one, other = rank(0, 2), rank(1, 2)
    assert [s.rank for s in samples({process_of(one): before(one)}, [one, other])] == [0]


JOB = """
    import time
    import torch
    import torch.distributed as dist

    dist.init_process_group("rdma")
    tensor, go = torch.ones(1 << 18), torch.ones(1)
    end = time.monotonic() + 60
    print("runs", flush=True)
    while go[0]:
        time.sleep(0.1 if dist.get_rank() == 1 else 0.01)
        dist.all_reduce(tensor)
        go[0] = float(time.monotonic() < end)
        dist.broadcast(go, 0)
"""


def top(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rdmacoll", "top", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_job_that_runs(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    job = jobs.start("-np", "3", jobs.python, jobs.script(JOB))
    try:
        assert job.stdout is not None
        for _ in range(3):
            job.stdout.readline()
        done = top("--once", "--every", "3", "--job", str(job.pid))
        assert done.returncode == 0, done.stderr
        assert "3 ranks" in done.stdout
        assert "rank 1 is late" in done.stdout, done.stdout
        pid = int(re.search(r"^ +1 +(\d+) ", done.stdout, re.MULTILINE)[1])  # type: ignore[index]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(LEAST_WAIT_S)
        stopped = top("--once", "--job", str(job.pid)).stdout
    finally:
        jobs.kill_all()
        job.communicate()
    assert "2 ranks" in stopped, stopped
    assert f"rank 1 (pid {pid}) did not answer (it is stopped)" in stopped
    assert re.search(r"in \w+ .+ #\d+ for .+ s: ranks? .+; no answer: rank 1", stopped)


def test_no_job() -> None:
    done = top("--once", "--job", "1000000000")
    assert done.returncode == 1
    assert "no rank that has joined a group was found" in done.stderr
