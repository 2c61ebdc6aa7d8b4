"""The commands `rdmacoll debug dump` and `rdmacoll debug show`."""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence

from rdmacoll.base import files
from rdmacoll.base.printable import printable
from rdmacoll.base.rank_numbers import ranks_text

from .ask import Asked, ask_all
from .dumps import Dump, read_folder
from .other_hosts import Elsewhere, ask_elsewhere
from .processes import Job, descendants, number_of, rank_processes
from .text import lines
from .timeline import write_timeline
from .to_torch import write_for_torch

# The host's name in a dump becomes part of a file's name. Another user, whom root asks, may have
# written anything there.
NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9.-]")
MOST_OF_A_NAME = 64


def debug(arguments: argparse.Namespace) -> int:
    try:
        return _dump(arguments) if arguments.what == "dump" else _show(arguments)
    except OSError as error:  # what cannot be written, or read
        print(f"rdmacoll debug: {printable(str(error))}", file=sys.stderr)
        return 1


def _dump(arguments: argparse.Namespace) -> int:
    pids = set(arguments.pid) if arguments.pid else None
    if arguments.job is not None:
        pids = descendants(arguments.job)
    asked = ask_all(pids, arguments.seconds)
    if not asked:
        where = "on this host" if pids is None else "among these processes"
        print(
            f"no rank that has joined a group was found {where}; look on its host, as its user "
            "and in its container, and see that RDMACOLL_FLIGHT_RECORDS is not 0",
            file=sys.stderr,
        )
        return 1
    jobs = sorted({one.job for one in asked})
    problems = 0
    for job in jobs:
        ours = [one for one in asked if one.job == job]
        elsewhere = Elsewhere([], []) if arguments.pid else ask_elsewhere(ours)
        asked += elsewhere.asked
        problems += len(elsewhere.problems)
        if len(jobs) > 1:
            address = printable(":".join(filter(None, job[:2])))
            print(f"=== the job at {address or 'an unknown address'}")
        print(*_job_lines(job, ours + elsewhere.asked), *elsewhere.problems, sep="\n")
    _keep(arguments, asked)
    dumps = [one.dump for one in asked if one.dump is not None]
    if arguments.torch or arguments.timeline:
        if len(jobs) > 1:
            print("several jobs run here: choose one with --job or --pid", file=sys.stderr)
            return 1
        _write(arguments, dumps)
    return 0 if len(dumps) == len(asked) and not problems else 1


def _job_lines(job: Job, asked: Sequence[Asked]) -> Iterator[str]:
    dumps = sorted((one.dump for one in asked if one.dump is not None), key=lambda one: one.rank)
    yield from lines(dumps)
    yield ""
    yield from (one.problem_text for one in asked if one.dump is None)
    yield from _absent(job, asked)


def _absent(job: Job, asked: Sequence[Asked]) -> Iterator[str]:
    """Ranks of the job that listen nowhere here."""
    sizes = [number_of(one.environ, "WORLD_SIZE") or 0 for one in asked]
    ranks = [one for one in asked if not one.is_server]
    found: set[int | None] = {one.dump.rank for one in ranks if one.dump is not None}
    found |= {number_of(one.environ, "RANK") for one in ranks}
    absent = set(range(max(sizes, default=0))) - found
    here = {rank: pids for rank, pids in rank_processes(job).items() if rank in absent}
    for rank, pids in sorted(here.items()):
        yield f"rank {rank} (pid {min(pids)}) runs, but has joined no group"
    if elsewhere := absent - set(here):
        yield f"{ranks_text(elsewhere)} of this job: ended, or on a host that was not asked"


def _keep(arguments: argparse.Namespace, asked: Sequence[Asked]) -> None:
    if arguments.out is None:
        return
    files.make_folder(arguments.out)
    for one in asked:
        if one.dump is not None:
            host = NOT_IN_A_NAME.sub("_", one.dump.host)[:MOST_OF_A_NAME]
            name = f"rdmacoll-rank{one.dump.rank}-{host}-pid{one.pid}.json"
            files.write(arguments.out / name, one.text)


def _show(arguments: argparse.Namespace) -> int:
    dumps, problems = read_folder(arguments.folder)
    for problem in problems:
        print(problem, file=sys.stderr)
    if not dumps:
        print(f"{arguments.folder} holds no dump of a rank", file=sys.stderr)
        return 1
    for dump in dumps:
        print(f"rank {dump.rank} (pid {dump.pid} on {dump.host}) wrote it: {dump.reason}")
    print()
    print(*lines(dumps), sep="\n")
    _write(arguments, dumps)
    return 0


def _write(arguments: argparse.Namespace, dumps: Sequence[Dump]) -> None:
    if arguments.torch:
        write_for_torch(dumps, arguments.torch)
    if arguments.timeline:
        write_timeline(dumps, arguments.timeline)
