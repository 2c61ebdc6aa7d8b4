"""What a job ended with, for people, and as an exit status. Pure.

Floor: launcher/base. Thread: any.
"""

import json
import signal
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from .cause import Cause, Why
from .job import Job

REPORT_LINES = 12


@dataclass(frozen=True)
class Failure:
    """A rank that failed on its own, not ended by us."""

    rank: int
    host: str
    pid: int
    returncode: int
    time_ns: int
    tail: list[str]  # last lines of its stderr


def pack_failures(failures: Sequence[Failure]) -> bytes:
    """The failures on a host, as the agents send them to each other."""
    return json.dumps([asdict(failure) for failure in failures]).encode()


def unpack_failures(hosts: Iterable[bytes]) -> list[Failure]:
    return [Failure(**fields) for host in hosts if host for fields in json.loads(host)]


def exit_status(cause: Cause) -> int:
    match cause.why:
        case Why.RUNNING:
            return 0
        case Why.FAILED:
            return cause.status if cause.status > 0 else 128 - cause.status
        case Why.STOPPED:
            return 128 + cause.status
        case _:
            return 1


def describe(cause: Cause, job: Job, late: Sequence[int]) -> str:
    """Why the job ended, in a line; `late` are the ranks that an exchange still waited for."""
    match cause.why:
        case Why.STOPPED:
            return f"stopped by {signal_name(cause.status)}"
        case Why.ABANDONED:
            return "rdmarun is gone"
        case Why.LATE:
            return (
                f"{_named(late, job)} did not open an endpoint within {job.start_timeout_s:g} s "
                "of the first that did (--start-timeout)"
            )
        case Why.ABSENT:
            ended = "failed before" if cause.status else "ended (status 0) without"
            return (
                f"{_named([cause.rank], job)} {ended} the group that others "
                "wait for; every rank must make the same groups in the same order"
            )
        case Why.NO_STORE:
            return "the process that hosts the TCPStore ended; its error is above"
        case Why.NO_START:
            return f"host {job.host_of(cause.rank)} could not start its ranks"
        case Why.HOST_LOST:
            return (
                f"the job cannot go on without host {job.host_of(cause.rank)} "
                "(--min-np says how many ranks are enough)"
            )
        case _:
            return ""


def failure_lines(failures: Sequence[Failure]) -> list[str]:
    """The first failure with its last words, then the others in a line each. Empty where those of
    all that failed are lost with their host."""
    if not failures:
        return []
    first, *others = sorted(failures, key=lambda failure: failure.time_ns)
    return [
        *_with_last_words(_what(first), first.tail),
        *(f"then {_what(other)}" for other in others),
    ]


def helper_lines(who: str, host: str, pid: int, returncode: int, tail: list[str]) -> list[str]:
    """How a server or the mount ended, with its last words."""
    return _with_last_words(_how(who, host, pid, returncode), tail)


def _with_last_words(what: str, tail: list[str]) -> list[str]:
    said = tail[-REPORT_LINES:]
    about = "; the last lines of its stderr:" if said else ""
    return [f"{what}{about}", *(f"    {line}" for line in said)]


def _what(failure: Failure) -> str:
    return _how(f"rank {failure.rank}", failure.host, failure.pid, failure.returncode)


def _how(who: str, host: str, pid: int, returncode: int) -> str:
    where = f"{who} on {host} (pid {pid})"
    if returncode < 0:
        return f"{where} was killed by {signal_name(-returncode)}"
    return f"{where} exited with status {returncode}"


def _named(ranks: Sequence[int], job: Job) -> str:
    names = ", ".join(f"{rank} on {job.host_of(rank)}" for rank in ranks)
    return f"rank{'s' if len(ranks) > 1 else ''} {names}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
