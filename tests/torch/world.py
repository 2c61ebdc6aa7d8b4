"""Worlds of real processes for the tests: N ranks forked from one server that has imported torch.

A `World` is started once and runs many test bodies; after a body that failed or hung, its processes
are ended by their pids and the next body gets new ones. Bodies are named (module, name), so the
ranks import the test's own file; arguments and results are pickled.
Not here: what the bodies check (test_*.py) and their inputs (cases.py).
"""

from __future__ import annotations

import contextlib
import datetime
import faulthandler
import importlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import time
import traceback
import unittest
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from hosts.enter import enter
from hosts.layout import Layout
from hosts.stand import Host

# What the ranks need, imported once by the fork server; none of these starts a thread.
PRELOAD = [
    "pytest.__main__",
    "numpy",
    "torch.distributed.checkpoint",
    "torch.distributed.fsdp",
    "torch.distributed.optim",
    "torch.distributed.tensor.parallel",
    "torch.nn.parallel.distributed",
    "torch.testing",
    "torch._dynamo",
]
GROUP_TIMEOUT = datetime.timedelta(seconds=30)
GRACE_S = 8.0  # for the other ranks, once one has failed
LOOPBACK = "127.0.0.1"

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOAD)

_backend = "rdma"


def backend() -> str:
    """The backend under test, in the test process and in every rank."""
    return _backend


def choose_backend(name: str) -> None:
    global _backend
    _backend = name


@dataclass(frozen=True)
class Place:
    """Where a rank runs: on the host of this holder, or on the machine itself."""

    local_rank: int
    holder: int | None = None


@dataclass(frozen=True)
class Hosted:
    """The hosts that a world of this layout is spread over."""

    hosts: list[Host]
    layout: Layout

    def places(self) -> list[Place]:
        return [
            Place(local_rank, host.keeper.holder)
            for host, ranks in zip(self.hosts, self.layout.ranks, strict=True)
            for local_rank in range(ranks)
        ]


def host_store() -> dist.TCPStore:
    """A store served by this process, so that it outlives every rank."""
    return dist.TCPStore(LOOPBACK, 0, is_master=True, wait_for_workers=False)


def client_store() -> dist.TCPStore:
    """The same store, in a rank."""
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return dist.TCPStore(address, port, is_master=False)


@dataclass
class Outcome:
    """What one rank made of a body: `kind` is ok, failed, skipped, died or hung."""

    kind: str
    value: Any = None
    text: str = ""


def run_body(module: str, name: str, kwargs: dict[str, Any]) -> Outcome:
    try:
        torch.manual_seed(0)
        function = getattr(importlib.import_module(module), name)
        return Outcome("ok", value=getattr(function, "body", function)(**kwargs))
    except unittest.SkipTest as skip:
        return Outcome("skipped", text=str(skip))
    except BaseException:
        return Outcome("failed", text=traceback.format_exc())


def _serve(
    connection: multiprocessing.connection.Connection,
    rank: int,
    size: int,
    backend_name: str,
    master: tuple[str, int],
    init: bool,
    log: str,
    place: Place,
) -> None:
    """A rank's main loop."""
    if place.holder is not None:
        enter(place.holder)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout = sys.stderr = os.fdopen(descriptor, "w", buffering=1)
    faulthandler.enable(all_threads=True)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(place.local_rank))
    os.environ.update(MASTER_ADDR=master[0], MASTER_PORT=str(master[1]))
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"  # rank 0 is a client like the others
    choose_backend(backend_name)
    torch.set_num_threads(1)
    if init:
        dist.init_process_group(backend_name, timeout=GROUP_TIMEOUT)
    with contextlib.suppress(EOFError):  # the test process has gone
        while (request := connection.recv()) is not None:
            connection.send(run_body(*request))
    if dist.is_initialized():
        dist.destroy_process_group()


def _serve_store(
    connection: multiprocessing.connection.Connection, address: str, holder: int
) -> None:
    enter(holder)
    store = dist.TCPStore(address, 0, is_master=True, wait_for_workers=False)
    connection.send(store.port)
    with contextlib.suppress(EOFError):
        connection.recv()


class World:
    """`size` ranks, warm from the first body to the last."""

    def __init__(self, size: int, init: bool = True, hosted: Hosted | None = None) -> None:
        self.size = size
        places = hosted.places() if hosted else [Place(rank) for rank in range(size)]
        master = self._store_on(hosted.hosts[0]) if hosted else self._store_here()
        self.folder = tempfile.TemporaryDirectory(prefix="world")
        self.connections: list[multiprocessing.connection.Connection] = []
        self.processes: list[multiprocessing.process.BaseProcess] = []
        for rank in range(size):
            ours, theirs = _context.Pipe()
            log = str(self._log(rank))
            arguments = (theirs, rank, size, backend(), master, init, log, places[rank])
            process = _context.Process(target=_serve, args=arguments)
            process.start()
            theirs.close()
            self.connections.append(ours)
            self.processes.append(process)

    def _store_here(self) -> tuple[str, int]:
        self._store = host_store()
        return LOOPBACK, self._store.port

    def _store_on(self, host: Host) -> tuple[str, int]:
        """In a process on that host, which ends with this one's end of the pipe."""
        self._store_end, theirs = _context.Pipe()
        arguments = (theirs, host.address, host.keeper.holder)
        _context.Process(target=_serve_store, args=arguments, daemon=True).start()
        theirs.close()
        return host.address, self._store_end.recv()

    def _log(self, rank: int) -> Path:
        return Path(self.folder.name, f"rank{rank}.log")

    def run(
        self, body: Callable[..., Any], kwargs: dict[str, Any], deadline_s: float
    ) -> list[Outcome]:
        """Runs the body in every rank; one outcome per rank, whatever happens."""
        for connection in self.connections:
            with contextlib.suppress(BrokenPipeError):  # it died before: its outcome says so
                connection.send((body.__module__, body.__name__, kwargs))
        outcomes: dict[int, Outcome] = {}
        ranks: dict[object, int] = {c: rank for rank, c in enumerate(self.connections)}
        deadline = time.monotonic() + deadline_s
        while len(outcomes) < self.size and time.monotonic() < deadline:
            waiting = [c for r, c in enumerate(self.connections) if r not in outcomes]
            ready = multiprocessing.connection.wait(waiting, deadline - time.monotonic())
            for rank in (ranks[end] for end in ready):
                outcomes[rank] = self._receive(rank)
                if outcomes[rank].kind != "ok":
                    deadline = min(deadline, time.monotonic() + GRACE_S)
        hung = [rank for rank in range(self.size) if rank not in outcomes]
        outcomes.update(self._stacks(hung))
        return [outcomes[rank] for rank in range(self.size)]

    def _receive(self, rank: int) -> Outcome:
        try:
            return self.connections[rank].recv()
        except (EOFError, ConnectionResetError):
            self.processes[rank].join(GRACE_S)
            code = self.processes[rank].exitcode
            return Outcome("died", value=code, text=f"exit status {code}\n{self.log_tail(rank)}")

    def _stacks(self, ranks: Iterable[int]) -> dict[int, Outcome]:
        hung = list(ranks)
        for rank in hung:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.processes[rank].pid or 0, signal.SIGUSR1)
        time.sleep(0.5 if hung else 0)  # for faulthandler to write
        return {r: Outcome("hung", text=f"its threads were at\n{self.log_tail(r)}") for r in hung}

    def log_tail(self, rank: int) -> str:
        path = self._log(rank)
        return path.read_text(errors="replace")[-6000:] if path.exists() else ""

    def close(self) -> list[int | None]:
        """Asks the ranks to leave; their exit statuses (None: had to be killed)."""
        for connection in self.connections:
            with contextlib.suppress(BrokenPipeError):
                connection.send(None)
        deadline = time.monotonic() + GRACE_S
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
        codes = [process.exitcode for process in self.processes]
        self.kill()
        return codes

    def kill(self) -> None:
        for process, connection in zip(self.processes, self.connections, strict=True):
            process.kill()
            process.join()
            connection.close()
        self.folder.cleanup()
