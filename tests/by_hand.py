"""Servers that are started by hand, beside ranks of torchrun or a Store of the test's own.

Floor: tests.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Sequence
from datetime import timedelta

import torch.distributed as dist
from job_runner import LIMIT_S, Jobs, wait_for

HOST = "127.0.0.1"
TIMEOUT = timedelta(seconds=30)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        port: int = sock.getsockname()[1]
    return port


class StoreOfTest:
    def __init__(self) -> None:
        self._store: dist.TCPStore | None = dist.TCPStore(
            HOST, 0, is_master=True, wait_for_workers=False, timeout=TIMEOUT
        )
        self.port = self._store.port

    def close(self) -> None:
        self._store = None


class Process:
    """One of our processes, with what it says in a file: nobody has to read it meanwhile."""

    def __init__(self, jobs: Jobs, name: str, command: Sequence[str], **env: str) -> None:
        self._name = name
        self._said = jobs.folder / f"{name}.said"
        with self._said.open("w") as file:
            self.process = subprocess.Popen(
                command,
                cwd=jobs.folder,
                env=jobs.env(env),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self.pid = self.process.pid

    def said(self) -> str:
        return self._said.read_text()

    def end(self) -> tuple[int, str]:
        """Waits for it; the status and all that it has said."""
        try:
            status = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self._name} has not ended: {self.said()}") from None
        return status, self.said()

    def wait_for_word(self, word: str) -> None:
        wait_for(lambda: word in self.said() or self.process.poll() is not None, word)
        assert word in self.said(), self.said()


class ByHand:
    """A job at a port of this host."""

    def __init__(self, jobs: Jobs, port: int) -> None:
        self._jobs = jobs
        self.port = port
        self._count = 0

    @property
    def store(self) -> str:
        return f"{HOST}:{self.port}"

    def rdmacoll(self, *args: str, **env: str) -> Process:
        self._count += 1
        command = [self._jobs.python, "-m", "rdmacoll", *args]
        return Process(self._jobs, f"rdmacoll{self._count}", command, **env)

    def start(self, number: int, servers: int, *more: str) -> Process:
        which = ["--number", str(number), "--servers", str(servers), "--store", self.store]
        return self.rdmacoll("ps", "serve", *which, *more)

    def serving(self, number: int, servers: int, *more: str) -> Process:
        """The same, once it serves."""
        server = self.start(number, servers, *more)
        server.wait_for_word("serves")
        return server

    def torchrun(self, workers: int, text: str) -> Process:
        script = self._jobs.script(text)
        options = ["--nproc-per-node", str(workers), "--master-addr", HOST]
        command = [self._jobs.python, "-m", "torch.distributed.run", *options]
        return Process(self._jobs, "torchrun", [*command, "--master-port", str(self.port), script])
