"""Asks the ranks of a job's other hosts, through the agent of rdmarun on this one.

What comes back is checked like any dump: it may be of another version.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rdmacoll.base.agent_protocol import ask_dumps
from rdmacoll.base.printable import printable

from .ask import Asked
from .dumps import MOST_BYTES, BadDump, parse
from .processes import number_of


@dataclass(frozen=True)
class Elsewhere:
    """What is known of a job's ranks on other hosts."""

    asked: list[Asked]
    problems: list[str]  # lines, of hosts that did not answer


def ask_elsewhere(here: Sequence[Asked]) -> Elsewhere:
    """here: ranks and servers of one job. Nothing is asked if none is a rank, or the job is on this
    host alone, or has no agent."""
    environ = next((one.environ for one in here if not one.is_server), here[0].environ)
    if (number_of(environ, "GROUP_WORLD_SIZE") or 1) < 2 or "RDMACOLL_AGENT" not in environ:
        return Elsewhere([], [])
    try:
        own, hosts = ask_dumps(environ["RDMACOLL_AGENT"])
    except (RuntimeError, ValueError) as error:
        return Elsewhere([], [f"the other hosts: {printable(str(error))}"])
    found, problems = [], []
    for number, (name, report) in enumerate(hosts):
        if number != own:
            try:
                found += list(_read(printable(name), report, environ))
            except (ValueError, TypeError, RecursionError):
                problems.append(f"host {printable(name)} does not answer")
    return Elsewhere(found, problems)


def _read(host: str, report: str, environ: dict[str, str]) -> Iterator[Asked]:
    for rank, pid, text, problem in json.loads(report):
        known = environ | {"RANK": str(int(rank))}
        try:
            if len(text) > MOST_BYTES:
                raise BadDump(f"more than {MOST_BYTES} bytes")
            dump = parse(text) if not problem else None
        except BadDump as error:
            dump, problem = None, f"answered nothing of use: {error}"
        why = f"on {host} {printable(str(problem))}" if problem else ""
        yield Asked(int(pid), known, text, dump, why)
