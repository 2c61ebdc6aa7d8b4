"""Asks the ranks of this host for their flight recorders (torch_ext/flight_service.h answers).

A rank listens on an abstract unix socket, so it is found in /proc/net/unix, and answers from a
thread of its own: its main thread may be stuck in a wait, with the GIL.
"""

import os
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .dumps import BadDump, Dump, parse

PREFIX = "@rdmacoll-debug/"
JOB_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "RDMACOLL_AGENT")

Job = tuple[str, ...]  # the same for all ranks of a job on this host


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


def ask_all(pids: set[int] | None, seconds: float) -> list[Asked]:
    """This user's processes that have joined a group; pids: of these only, whoever's they are."""
    names = _listening()
    with ThreadPoolExecutor(max_workers=max(1, min(64, len(names)))) as pool:
        found = pool.map(lambda name: _ask(name, pids, time.monotonic() + seconds), names)
    return sorted(filter(None, found), key=lambda asked: asked.pid)


def descendants(pid: int) -> set[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for folder in _processes():
        children.setdefault(int(_stat(int(folder.name))[1]), []).append(int(folder.name))
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
    for folder in _processes():
        environ = environ_of(int(folder.name))
        pid = int(folder.name)
        if environ.get("RANK", "").isdigit() and job_of(pid, environ) == job:
            found.setdefault(int(environ["RANK"]), []).append(pid)
    return found


def job_of(pid: int, environ: dict[str, str]) -> Job:
    """By what a launcher has set; ranks that a program has spawned itself have one parent."""
    if "MASTER_PORT" in environ:
        return tuple(environ.get(name, "") for name in JOB_VARIABLES)
    return ("parent", _stat(pid)[1])


def environ_of(pid: int) -> dict[str, str]:
    """Empty where it is gone, or another user's."""
    entries = _read(Path(f"/proc/{pid}/environ")).split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def _listening() -> list[str]:
    lines = Path("/proc/net/unix").read_text().splitlines()
    # A connection that was accepted has its listener's name.
    return sorted({line.split()[-1] for line in lines if PREFIX in line})


def _ask(name: str, pids: set[int] | None, deadline: float) -> Asked | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(max(0.01, deadline - time.monotonic()))
        pid = int(name.removeprefix(PREFIX).split("/")[0])
        try:
            sock.connect("\0" + name[1:])
            credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            pid, uid, _ = struct.unpack("iII", credentials)
        except TimeoutError:  # others have asked it, too, and it answers nobody
            uid = os.getuid()
        except OSError:
            return None  # it has ended
        if pid not in pids if pids is not None else uid != os.getuid():
            return None
        return _listen(sock, pid, deadline)


def _listen(sock: socket.socket, pid: int, deadline: float) -> Asked:
    environ = environ_of(pid)
    parts = []
    try:
        while True:
            sock.settimeout(max(0.01, deadline - time.monotonic()))
            part = sock.recv(1 << 16)
            if not part:
                break
            parts.append(part)
        text = b"".join(parts).decode(errors="replace")
        return Asked(pid, environ, text, parse(text), "")
    except TimeoutError:
        stopped = " (it is stopped)" if _stat(pid)[0] in ("T", "t") else ""
        return Asked(pid, environ, "", None, f"did not answer{stopped}")
    except OSError as error:
        return Asked(pid, environ, "", None, f"did not answer: {error}")
    except BadDump as error:
        return Asked(pid, environ, "", None, f"answered nothing of use: {error}")


def _stat(pid: int) -> list[str]:
    """Its state, its parent and more. The name before them may hold anything, also a )."""
    return _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split() or ["X", "0"]


def _processes() -> list[Path]:
    return [folder for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
