"""A job with two servers, and a mount of its files.

Floor: tests.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from by_hand import ByHand, Process, StoreOfTest
from fuse import check_fuse
from job_runner import Jobs, clean_jobs, wait_for


class Mounted:
    """Servers without ranks, and one folder or more that shows their files."""

    def __init__(self, jobs: Jobs, store: StoreOfTest, memory: str = "4G") -> None:
        self.jobs = jobs
        self._by_hand = ByHand(jobs, store.port)
        self.store = self._by_hand.store
        servers = [self._by_hand.start(one, 2, "--memory", memory) for one in (0, 1)]
        self.servers: list[Process] = servers
        self._folders: list[Path] = []
        self.folder, self.daemon = self.mount("mounted")

    def mount(self, name: str, *more: str) -> tuple[Path, Process]:
        folder = self.jobs.folder / f"{name}{len(self._folders)}"
        folder.mkdir()
        self._folders.append(folder)
        daemon = self.start(folder, *more)
        daemon.wait_for_word("has the files")
        return folder, daemon

    def start(self, folder: Path, *more: str) -> Process:
        return self._by_hand.rdmacoll("mount", str(folder), "--store", self.store, *more)

    def join(self) -> Process:
        """One server more."""
        server = self._by_hand.rdmacoll("ps", "serve", "--join", "--store", self.store)
        self.servers.append(server)
        return server

    def tables_at(self, server: int) -> int:
        """As it has said itself."""
        status = self._by_hand.rdmacoll("ps", "status", "--store", self.store, "--json")
        _, said = status.end()
        return int(json.loads(said)[0]["servers"][server]["tables"])

    def kill(self, server: int) -> None:
        self.servers[server].process.kill()

    def end(self) -> None:
        for process in self.jobs.processes():
            process.terminate()
        wait_for(lambda: not any(map(os.path.ismount, self._folders)), "the end of the mounts")
        self.jobs.assert_none_left()


@contextmanager
def job_of_its_own(folder: Path, memory: str = "4G") -> Iterator[Mounted]:
    check_fuse()
    store = StoreOfTest()
    with clean_jobs(folder) as jobs:
        mounted = Mounted(jobs, store, memory)
        try:
            yield mounted
        finally:  # who kills all processes leaves a mount of which nobody is there
            for process in [*mounted.servers, mounted.daemon]:
                process.process.send_signal(signal.SIGCONT)
            mounted.end()
    store.close()
