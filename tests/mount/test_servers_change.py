"""Files are read and written while servers are lost, and others come: nothing is lost, and those
that come take their part.

Floor: tests.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from pathlib import Path

import numpy as np
import train_by_files
from by_hand import Process
from job_runner import wait_for
from mounted_job import Mounted

STEPS = 30


class Files:
    """A thread that writes files, replaces and reads them again, until it is told to end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._random = random.Random(0)
        self._known: dict[str, bytes] = {}
        self._is_over = threading.Event()
        self.written = 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                self._write_one()
                self._check(self._random.choice(list(self._known)))
        except BaseException as failure:
            self._failure = failure

    def _write_one(self) -> None:
        name = f"file {self._random.randrange(10)}"
        data = self._random.randbytes(self._random.choice([100, 100_000, 3_000_000]))
        (self._folder / name).write_bytes(data)
        self._known[name] = data
        self.written += 1

    def _check(self, name: str) -> None:
        assert (self._folder / name).read_bytes() == self._known[name], name

    def wait_for_more(self, more: int = 20) -> None:
        wanted = self.written + more
        wait_for(lambda: self.written >= wanted or self._failure is not None, "more files")

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(60)
        if self._failure is not None:
            raise self._failure
        for name in self._known:
            self._check(name)


def test_a_server_comes_and_one_is_lost(own: Mounted) -> None:
    files = Files(own.folder)
    try:
        files.wait_for_more()
        own.join().wait_for_word("serves")
        files.wait_for_more()
        # It has parts of files by now, as primary or backup.
        wait_for(lambda: own.tables_at(2) > 0, "files at the server that has come")
        own.kill(0)
        files.wait_for_more()
    finally:
        files.end()


def test_training_needs_nothing_but_files(own: Mounted) -> None:
    program = train_by_files.__file__
    at = own.folder / "run"
    at.mkdir()
    command = [sys.executable, program, str(at)]
    ranks = [Process(own.jobs, f"rank{rank}", [*command, str(rank), str(STEPS)]) for rank in (0, 1)]
    reached = own.jobs.folder / "step.0"
    wait_for(lambda: reached.exists() and int(reached.read_text() or 0) >= 5, "five steps")
    own.kill(1)
    for rank in ranks:
        status, said = rank.end()
        assert status == 0, said
    wanted = train_by_files.trained(STEPS)
    for name in "parameters", "parameters.1":
        assert np.array_equal(np.load(at / name), wanted)
    assert len(os.listdir(at)) == 4  # the last gradients, and the parameters
