"""Asks the ranks of this host for their flight recorders (torch_ext/join/flight_service.h answers).

A rank answers from a thread of its own: its main thread may be stuck in a wait, with the GIL.
"""

from dataclasses import dataclass

from rdmacoll.base.listeners import Answer, ask_listeners
from rdmacoll.base.printable import printable

from .dumps import MOST_BYTES, BadDump, Dump, parse
from .processes import Job, environ_of, job_of

KIND = "rdmacoll-debug"  # as torch_ext/join/flight_service.cc makes names


@dataclass(frozen=True)
class Asked:
    """A process that listens: its dump, or why there is none."""

    pid: int
    environ: dict[str, str]
    text: str
    dump: Dump | None
    problem: str

    @property
    def job(self) -> Job:
        return job_of(self.pid, self.environ)

    @property
    def is_server(self) -> bool:
        """It is of the job, but no rank of it (rdmarun --servers, --mount)."""
        is_mount = "RDMACOLL_MOUNT" in self.environ and "RANK" not in self.environ
        return is_mount or "RDMACOLL_SERVER" in self.environ

    @property
    def problem_text(self) -> str:
        """The problem, with whose it is."""
        rank = printable(self.environ.get("RANK", "?"), 20)
        return f"rank {rank} (pid {self.pid}) {self.problem}"


def ask_all(pids: set[int] | None, seconds: float) -> list[Asked]:
    """Asks this user's processes that have joined a group; or those of `pids`, whoever's they are.
    By process id."""
    return [_parsed(answer) for answer in ask_listeners(KIND, pids, seconds, MOST_BYTES)]


def _parsed(answer: Answer) -> Asked:
    dump: Dump | None = None
    problem = answer.problem
    try:
        dump = parse(answer.text) if not problem else None
    except BadDump as error:
        problem = printable(f"answered nothing of use: {error}")
    text = answer.text if dump is not None else ""
    return Asked(answer.pid, environ_of(answer.pid), text, dump, problem)
