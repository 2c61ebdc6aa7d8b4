"""Preload: the process that imports the modules of --preload, and forks the ranks of this host.

The imports take seconds, so the agent does not wait for them; a fork takes milliseconds, so it
does. preload/server.py is the process, and has the protocol.
Floor: launcher/agent. Thread: the agent's; the ranks' parent-death signal hangs on it.
"""

import json
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.report import signal_name
from rdmacoll.launcher.preload import FOLDER, MESSAGE_BYTES, ROOM, ROOM_BYTES

from .rank_env import shared_env
from .spawn import Cpus, Envs, Started, prepare, why_not

FORK_TIMEOUT_S = 60.0  # for all ranks of a host; a fork takes 10 ms
# So many ranks begin together, while the next are forked. If 64 did, torch would ask the name
# server more at once than it may answer, and then wait for 5 s (docs/TROUBLESHOOTING.md).
BATCH = 8


class PreloadError(OSError):
    """The process does not come up, or forks no ranks; the message says why."""


class Preload:
    """There is a process from begin() on, until close() or its own end."""

    def __init__(self, job: Job, selector: selectors.BaseSelector) -> None:
        self._job = job
        self._selector = selector
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._ready = False
        self._error = ""
        self.deadline: float | None = None  # for the imports

    def begin(self) -> None:
        """Starts the process if there is none."""
        if self._process is not None:
            return
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ready, self._error = False, ""
        self.deadline = time.monotonic() + self._job.start_timeout_s
        shared = shared_env(self._job)
        python_path = shared.get("PYTHONPATH")
        # Ranks write their own variables into this room, so it has to come last (server.py).
        room = f"{theirs.fileno()}".ljust(ROOM_BYTES - len(ROOM) - 1)
        path = f"{FOLDER}{os.pathsep}{python_path}" if python_path else FOLDER
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, *self._job.argv],
                    cwd=self._job.cwd,
                    env={**shared, "PYTHONPATH": path, ROOM: room},
                    stdin=subprocess.DEVNULL,
                    stdout=2,  # what the imports print is of no rank
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                    preexec_fn=partial(prepare, os.getpid()),
                )
        except OSError as error:
            self.close()
            raise PreloadError(f"{self._what} cannot be started: {why_not(error)}") from None
        self._selector.register(self._socket, selectors.EVENT_READ, self._hear)
        order = [os.getpid(), self._job.preload, python_path]
        with suppress(ConnectionError):  # it has ended already, and the agent will reap it
            self._socket.send(json.dumps(order).encode())

    @property
    def ready(self) -> bool:
        """Whether it can fork. PreloadError if it never will, or is not in time."""
        if self._error:
            raise PreloadError(self._error)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise PreloadError(
                f"{self._what} is not through with its imports after "
                f"{self._job.start_timeout_s:g} s (--start-timeout)"
            )
        return self._ready

    def fork(self, own: Envs, cpus: Callable[[int], Cpus]) -> Iterator[tuple[int, Started]]:
        """Forks these ranks, once the first is asked for. PreloadError unless it forks them all."""
        assert self._socket is not None
        pipes: dict[int, tuple[int, int]] = {}
        try:
            self._socket.settimeout(FORK_TIMEOUT_S)
            for number, (rank, env) in enumerate(own.items()):
                if number % BATCH == 0 and number > 0:
                    self._socket.send(b"[]")
                out, out_end = os.pipe2(os.O_CLOEXEC)
                err, err_end = os.pipe2(os.O_CLOEXEC)
                pipes[rank] = out, err
                try:
                    order = json.dumps([env, sorted(cpus(rank))]).encode()
                    socket.send_fds(self._socket, [order], [out_end, err_end])
                finally:
                    os.close(out_end)
                    os.close(err_end)
            self._socket.send(b"[]")
            pids = dict(self._answers(len(own)))
        except OSError as error:
            for fd in (fd for pair in pipes.values() for fd in pair):
                os.close(fd)
            if isinstance(error, PreloadError):
                raise
            raise PreloadError(f"{self._what} forks no ranks: {error}") from None
        yield from ((rank, Started(pids[rank], *pipes[rank])) for rank in own)

    def _answers(self, count: int) -> Iterator[tuple[int, int]]:
        """Ranks and their process ids."""
        assert self._socket is not None
        for _ in range(count):
            data = self._socket.recv(MESSAGE_BYTES)
            if not data:
                raise ConnectionResetError("it has ended")
            answer = json.loads(data)
            if "error" in answer:
                raise PreloadError(answer["error"])
            yield answer["rank"], answer["pid"]

    def ended(self, pid: int, returncode: int) -> None:
        """Takes note of a reaped child, which may be the process. begin() starts another."""
        if self._process is None or pid != self._process.pid:
            return
        self._process.returncode = returncode
        self._process = None
        if self._socket is not None and not self._ready:
            self._hear()
            how = f"was killed by {signal_name(-returncode)}" if returncode < 0 else "ended"
            self._error = self._error or f"{self._what} (pid {pid}) {how}"
        self.close()

    def close(self) -> None:
        """The process ends by itself, unless it is importing."""
        if self._socket is not None:
            self._stop_hearing()
            self._socket.close()
            self._socket = None
        self._ready = False

    @property
    def _what(self) -> str:
        return f"the process of --preload {','.join(self._job.preload)}"

    def _hear(self) -> None:
        """It has imported all, or says what is wrong; or it has ended, which ended() tells."""
        assert self._socket is not None
        self._stop_hearing()
        data = b""
        with suppress(ConnectionError):
            data = self._socket.recv(MESSAGE_BYTES)
        if data:
            self._error = json.loads(data).get("error", "")
            self._ready = not self._error

    def _stop_hearing(self) -> None:
        self.deadline = None
        if self._socket is not None and self._socket in self._selector.get_map():
            self._selector.unregister(self._socket)
