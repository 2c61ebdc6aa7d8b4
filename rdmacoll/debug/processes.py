"""What /proc says of the processes of this host: which job each is of, and which are its children.

Other users choose much of it, the environments above all. So texts are checked before they are
taken for numbers.
"""

from pathlib import Path

from rdmacoll.base.listeners import stat_of

JOB_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "RDMACOLL_AGENT")
DIGITS = 6  # of a rank or of a number of ranks; a job has far fewer

Job = tuple[str, ...]  # the same for all ranks of a job on this host


def descendants(pid: int) -> set[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for one in _processes():
        children.setdefault(int(stat_of(one)[1]), []).append(one)
    found: set[int] = set()
    new = [pid]
    while new:
        one = new.pop()
        if one not in found:
            found.add(one)
            new += children.get(one, [])
    return found


def rank_processes(job: Job) -> dict[int, list[int]]:
    """Rank -> pids: all processes of a job on this host, also those that are in no group."""
    found: dict[int, list[int]] = {}
    for pid in _processes():
        environ = environ_of(pid)
        rank = number_of(environ, "RANK")
        if rank is not None and job_of(pid, environ) == job:
            found.setdefault(rank, []).append(pid)
    return found


def job_of(pid: int, environ: dict[str, str]) -> Job:
    """By what a launcher has set; ranks that a program has spawned itself have one parent."""
    if "MASTER_PORT" in environ:
        return tuple(environ.get(name, "") for name in JOB_VARIABLES)
    return ("parent", stat_of(pid)[1])


def environ_of(pid: int) -> dict[str, str]:
    """Empty for a process that has ended, or that is another user's."""
    entries = _read(f"/proc/{pid}/environ").split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def number_of(environ: dict[str, str], name: str) -> int | None:
    """A variable that is a rank or a number of ranks; None if it is no such thing."""
    text = environ.get(name, "")
    plain = text.isascii() and text.isdigit() and len(text) <= DIGITS
    return int(text) if plain else None


def _processes() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
