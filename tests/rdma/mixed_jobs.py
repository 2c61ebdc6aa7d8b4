"""Jobs in which some pairs of ranks speak verbs and others tcp, as one of the hosts has no device.

    python tests/rdma/mixed_jobs.py

What goes which way, what rank 0 says of it, the results of every call, a rank that is killed, and
what RDMACOLL_REQUIRE makes of such a job.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import exact_calls
import forked_ranks
import torch
import torch.distributed as dist
from forked_ranks import Body, world_of
from lost_ranks import ELEMENTS, QUICK, expect, one_is_killed
from paths import NO_DEVICE, Place, backend, check_paths, way

import rdmacoll

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts import Part, part

BYTES = (4, 96, 4096, 65_536, 1 << 20, (4 << 20) + 4, 16 << 20)
SOME_BYTES = (4, 4096, 1 << 20)  # for every algorithm
LIMIT_S = 400  # of all calls of all sizes
ALGORITHMS = ("ring", "tree", "halving_doubling", "one_shot", "two_shot", "direct")


A, B, C = Place("a"), Place("b"), Place("c", has_device=False)


@dataclass(frozen=True)
class Job:
    places: tuple[Place, ...]  # by rank
    said: str  # by rank 0, a pattern

    def enter(self, rank: int) -> None:
        """Makes this process a rank of the job."""
        place = self.places[rank]
        os.environ |= {"RDMACOLL_HOST_ID": place.host, **({} if place.has_device else NO_DEVICE)}

    def __str__(self) -> str:
        return ", ".join(place.host for place in self.places)


VERBS, TCP = r"verbs \(\S+ port \d+ \([^()]+\)\)", r"tcp \([^()]+\)"
JOBS = (
    Job(
        (A, B, C),
        f"sends over {VERBS} to 1 rank on 1 other host; {TCP} to 1 rank on 1 other host",
    ),
    Job(
        (A, A, B, C),
        "sends over shm to 1 rank of this host; "
        f"{VERBS} to 1 rank on 1 other host; {TCP} to 1 rank on 1 other host",
    ),
    Job((C, A, B), f"sends over {TCP} to 2 ranks on 2 other hosts"),
)


def in_job(job: Job, body: Body) -> Body:
    """In the job's group, which has the paths that it must have; rank 0 has said so."""

    def joined(rank: int, store: dist.Store) -> None:
        job.enter(rank)
        with ExitStack() as stack:
            with heard() as lines:
                stack.enter_context(world_of(len(job.places), rank, store))
            check_what_is_said(job, rank, [line for line in lines if "sends over" in line])
            check_paths(list(job.places))
            body(rank, store)

    return joined


def check_what_is_said(job: Job, rank: int, said: list[str]) -> None:
    assert len(said) == (rank == 0), f"rank {rank} said {said}"
    if rank == 0:
        assert re.search(job.said + "$", said[0]), f"{said[0]!r} is not {job.said!r}"


@contextmanager
def heard() -> Iterator[list[str]]:
    """The lines that this process writes to stderr, there afterwards; they get there, too."""
    lines: list[str] = []
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            file.seek(0)
            text = file.read()
            os.write(2, text)
            lines += text.decode().splitlines()


def every_call(rank: int, _store: dist.Store) -> None:
    """In the heap and out of it, of every size; and of some sizes by every algorithm."""
    began, calls = time.monotonic(), 0
    for size_bytes in BYTES:
        for make in (rdmacoll.empty, torch.empty):
            calls += exact_calls.check_all(size_bytes, dist.group.WORLD, make)
    for algorithm in ALGORITHMS:
        group = dist.new_group(pg_options=rdmacoll.Options(algorithm=algorithm))
        for size_bytes in SOME_BYTES:
            calls += exact_calls.check_all(size_bytes, group, torch.empty)
        dist.destroy_process_group(group)
    if rank == 0:
        print(f"{calls} calls were exact, {time.monotonic() - began:.0f} s", flush=True)


def is_refused(job: Job) -> Body:
    """Each says to which host it has no verbs."""

    def body(rank: int, store: dist.Store) -> None:
        job.enter(rank)
        os.environ["RDMACOLL_REQUIRE"] = "verbs"
        mine = job.places[rank]
        unreached = [place.host for place in job.places if way(mine, place) == "tcp"]
        began = time.monotonic()
        try:
            with world_of(len(job.places), rank, store):
                pass
        except RuntimeError as error:
            pattern = f"RDMACOLL_REQUIRE=verbs asks for verbs to host '{unreached[0]}'"
            expect(rank, pattern, str(error), time.monotonic() - began)
        else:
            raise AssertionError(f"rank {rank} has joined over {backend()._paths()}")

    return body


def run(what: str, job: Job, body: Body, victim: int | None = None, **limit: float) -> None:
    """SystemExit unless all ranks end well, but for the one that is killed."""
    statuses = [-signal.SIGKILL if rank == victim else 0 for rank in range(len(job.places))]
    forked_ranks.run(f"{job}: {what}", len(job.places), body, statuses, **limit)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", type=part, default=Part(), metavar="K/N", help="of the jobs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # what torch thinks of its own names
    os.environ |= QUICK
    for job in options.part.of(JOBS):
        run("every call", job, in_job(job, every_call), limit_s=LIMIT_S)
        run("verbs is required", job, is_refused(job))
        for victim in range(1, len(job.places)):
            for elements in ELEMENTS:
                what = f"rank {victim} is killed among all_reduces of {elements} elements"
                run(what, job, in_job(job, one_is_killed(victim, elements)), victim)


if __name__ == "__main__":
    main()
