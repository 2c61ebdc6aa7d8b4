"""Asks the servers of this host what the servers of their jobs do. Each knows of all of its job.

Floor: rdmacoll/servers. Thread: any.
"""

from dataclasses import dataclass

from rdmacoll.base.listeners import ask_listeners
from rdmacoll.base.printable import printable

from .listener import KIND
from .status import JobStatus

MOST_BYTES = 64 << 20  # of an answer


@dataclass(frozen=True)
class Found:
    jobs: list[JobStatus]  # each once
    problems: list[str]  # lines, of servers that have not said what is wanted


def ask_servers(seconds: float) -> Found:
    """seconds: the longest wait for an answer."""
    jobs: dict[str, JobStatus] = {}
    problems = []
    for answer in ask_listeners(KIND, None, seconds, MOST_BYTES):
        problem = answer.problem
        if not problem:
            try:
                status = JobStatus.from_text(answer.text)
                jobs.setdefault(status.store, status)
            except ValueError as error:
                problem = f"answered {printable(answer.text, 200)!r}: {printable(str(error))}"
        if problem:
            problems.append(f"the server with pid {answer.pid} {problem}")
    return Found(list(jobs.values()), problems)
