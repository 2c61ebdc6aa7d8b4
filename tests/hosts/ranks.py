"""Ranks of backend "rdma" on several hosts, as processes that a test talks with: each says words,
and the test waits for them. torchrun's variables are set as a launcher would.

Floor: tests.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping

from hosts.layout import Layout
from hosts.stand import Host

PORT = 29_500  # of the Store; on every host all ports are free
LIMIT_S = 120.0

COMMON = """
import os, sys, time
from pathlib import Path
import torch
import torch.distributed as dist

def say(*words):
    print(*words, flush=True)

def say_error(error):
    say("raised", time.monotonic(), " ".join(str(error).split()))
    time.sleep(600)  # rank 0 has the Store, which the others may need to see what is wrong

torch.set_num_threads(1)
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
"""
JOIN = "dist.init_process_group('rdma')\n"


class Rank:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, word: str, limit_s: float = LIMIT_S) -> list[str]:
        """The words of the next line that begins with this one."""
        deadline = time.monotonic() + limit_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(self._vain(word, f"in {limit_s:.1f} s")) from None
            if line is None:
                raise AssertionError(self._vain(word, f"but ended: {self.process.wait(LIMIT_S)}"))
            self._said.append(line)
            if line.split()[:1] == [word]:
                return line.split()

    def _vain(self, word: str, how: str) -> str:
        return f"it did not say {word!r} {how}; it said:\n{''.join(self._said)}"


def start_ranks(
    hosts: list[Host],
    layout: Layout,
    script: str,
    *,
    env: Mapping[str, str] | None = None,
    env_of_host: Mapping[int, Mapping[str, str]] | None = None,
) -> list[Rank]:
    """`script` goes on after COMMON. Rank 0 serves the Store."""
    ranks = []
    for rank in range(layout.world):
        host = layout.host_of(rank)
        local_rank = rank - sum(layout.ranks[:host])
        variables = {
            "RANK": str(rank),
            "LOCAL_RANK": str(local_rank),
            "WORLD_SIZE": str(layout.world),
            "LOCAL_WORLD_SIZE": str(layout.ranks[host]),
            "MASTER_ADDR": hosts[0].address,
            "MASTER_PORT": str(PORT),
            **(env or {}),
            **(env_of_host or {}).get(host, {}),
        }
        process = hosts[host].start(
            sys.executable,
            "-c",
            COMMON + script,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        ranks.append(Rank(process))
    return ranks


Start = Callable[..., list[Rank]]  # the fixture
