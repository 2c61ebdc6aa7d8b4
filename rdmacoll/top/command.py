"""The command `rdmacoll top`. Thread: the main one."""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live

from rdmacoll.base.printable import printable
from rdmacoll.debug.ask import ask_all
from rdmacoll.debug.dumps import Dump
from rdmacoll.debug.other_hosts import ask_elsewhere
from rdmacoll.debug.processes import Job, descendants

from .samples import Process, process_of, samples
from .screen import summary, table

ANSWER_S = 2.0  # the longest wait for ranks that do not answer


@dataclass(frozen=True)
class Ranks:
    """Of a job."""

    dumps: dict[Process, Dump]
    silent: list[str]  # who did not answer, as lines


Seen = dict[Job, Ranks]


def top(arguments: argparse.Namespace) -> int:
    before = _look(arguments.job)
    if not before:
        print(
            "rdmacoll top: no rank that has joined a group was found on this host; look on its "
            "host, as its user and in its container, and see that RDMACOLL_FLIGHT_RECORDS is not 0",
            file=sys.stderr,
        )
        return 1
    # Names and addresses are shown as they are, and "[::1]" is no markup.
    console = Console(highlight=False, markup=False, emoji=False)
    try:
        if console.is_terminal and not arguments.once:
            with Live(console=console, auto_refresh=False, screen=True) as live:
                for screen in _screens(before, arguments):
                    live.update(screen, refresh=True)
        else:
            for screen in _screens(before, arguments):
                console.print(screen)
                if arguments.once:
                    return 0
    except KeyboardInterrupt:
        return 0
    print("rdmacoll top: the job has ended", file=sys.stderr)
    return 0


def _screens(before: Seen, arguments: argparse.Namespace) -> Iterator[Group]:
    """Until the job has ended."""
    while True:
        time.sleep(arguments.every)
        now = _look(arguments.job)
        if not now:
            return
        yield _screen(before, now)
        before = now


def _look(job: int | None) -> Seen:
    asked = ask_all(None if job is None else descendants(job), ANSWER_S)
    seen: Seen = {}
    for one in sorted({one.job for one in asked}):
        ours = [each for each in asked if each.job == one]
        elsewhere = ask_elsewhere(ours)
        ranks = [each for each in [*ours, *elsewhere.asked] if not each.is_server]
        dumps = {process_of(each.dump): each.dump for each in ranks if each.dump is not None}
        if dumps:
            silent = [each.problem_text for each in ranks if each.dump is None]
            seen[one] = Ranks(dumps, [*silent, *elsewhere.problems])
    return seen


def _screen(before: Seen, now: Seen) -> Group:
    parts: list[object] = []
    for job, ranks in now.items():
        dumps = list(ranks.dumps.values())
        shown = samples(before[job].dumps, dumps) if job in before else []
        if shown:  # else it has just begun
            address = printable(":".join(filter(None, job[:2]))) or "an unknown address"
            count = f"{len(shown)} rank{'' if len(shown) == 1 else 's'}"
            parts.append(table(f"the job at {address}: {count}", shown))
            parts += [*ranks.silent, *summary(shown, dumps, is_whole=not ranks.silent)]
    return Group(*parts)  # type: ignore[arg-type]
