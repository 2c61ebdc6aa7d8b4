"""Ranks of backend "rdma" on several hosts, that a test talks with: each says words, and the test
waits for them. They are forked from a server that has imported torch; the variables are torchrun's.

Floor: tests.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from hosts.enter import enter
from hosts.layout import Layout
from hosts.stand import Host

PORT = 29_500  # of the Store; on every host all ports are free
LIMIT_S = 120.0
STACKS_S = 0.5  # for faulthandler to write

COMMON = """
import os, sys, time
import torch
import torch.distributed as dist

def say(*words):
    test.send([*map(str, words)])

def say_error(error):
    say("raised", time.monotonic(), *str(error).split())
    time.sleep(600)  # rank 0 has the Store, which the others may need to see what is wrong

torch.set_num_threads(1)
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
"""
JOIN = "dist.init_process_group('rdma')\n"

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch.distributed", "hosts.ranks"])


def _serve(test: Connection, script: str, holder: int, variables: dict[str, str], log: str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout = sys.stderr = os.fdopen(descriptor, "w", buffering=1)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    enter(holder)
    os.environ.update(variables)
    exec(compile(COMMON + script, "<script of the test>", "exec"), {"test": test})


class Rank:
    def __init__(self, script: str, holder: int, variables: dict[str, str], log: Path) -> None:
        self._log = log
        self._test, theirs = _context.Pipe()
        arguments = (theirs, script, holder, variables, str(log))
        self._process = _context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def wait_for(self, word: str, limit_s: float = LIMIT_S) -> list[str]:
        """What it says next that begins with this word."""
        deadline = time.monotonic() + limit_s
        while self._test.poll(max(0.0, deadline - time.monotonic())):
            try:
                said: list[str] = self._test.recv()
            except (EOFError, ConnectionResetError):
                raise AssertionError(self._vain(word, f"but ended with {self.status()}")) from None
            if said[0] == word:
                return said
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGUSR1)
        time.sleep(STACKS_S)
        raise AssertionError(self._vain(word, f"in {limit_s:.1f} s"))

    def _vain(self, word: str, how: str) -> str:
        """With what all have written: the cause is often another's."""
        logs = sorted(self._log.parent.glob("rank*"), key=lambda path: path != self._log)
        wrote = [f"{path.name}:\n{path.read_text(errors='replace')[-6000:]}" for path in logs]
        return "\n".join([f"{self._log.name} did not say {word!r} {how}; they wrote", *wrote])

    def tell(self) -> None:
        """What `test.poll()` is for in its script."""
        self._test.send("")

    def status(self) -> int | None:
        """Once it has ended."""
        self._process.join(LIMIT_S)
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def start_ranks(
    hosts: list[Host],
    layout: Layout,
    script: str,
    folder: Path,
    *,
    env: Mapping[str, str] | None = None,
    env_of_host: Mapping[int, Mapping[str, str]] | None = None,
) -> list[Rank]:
    """`script` goes on after COMMON. Rank 0 serves the Store. `folder` takes what they write."""
    ranks: list[Rank] = []
    for number, (host, count) in enumerate(zip(hosts, layout.ranks, strict=True)):
        for local_rank in range(count):
            variables = {
                "RANK": str(len(ranks)),
                "LOCAL_RANK": str(local_rank),
                "WORLD_SIZE": str(layout.world),
                "LOCAL_WORLD_SIZE": str(count),
                "MASTER_ADDR": hosts[0].address,
                "MASTER_PORT": str(PORT),
                **(env or {}),
                **(env_of_host or {}).get(number, {}),
            }
            log = folder / f"rank{len(ranks)}-{time.monotonic_ns()}"
            ranks.append(Rank(script, host.keeper.holder, variables, log))
    return ranks


Start = Callable[..., list[Rank]]  # the fixture
