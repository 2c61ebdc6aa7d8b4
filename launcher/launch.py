"""One launch: what starts the agents, from its start to its end, and the signals to rdmarun.

That is mpiexec, or the only agent itself. The job goes to the agents through its standard input,
which stays open: its end tells them that rdmarun is gone.
Floor: launcher, in rdmarun. Thread: the main one.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from .job import ASK, PIECE_BYTES, Job

STOP_TIMEOUT_S = 15.0  # for the agents to end the ranks (5 s of grace) and themselves
KILL_TIMEOUT_S = 5.0  # for what started them to end them when they do not answer
CHUNK_BYTES = 1 << 16


class Launch:
    """The time from its start to its end; `name` is what people call it."""

    def __init__(self, job: Job, name: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self._job = job
        self._name = name
        self._to_agent = bytearray(job.to_line())
        self._before_ready = bytearray()
        self._ready = False
        self._gave_up = False
        self._stopped_by: int | None = None
        self._deadline: float | None = time.monotonic() + job.start_timeout_s
        self._process = subprocess.Popen(
            list(argv),
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # the terminal's Ctrl-C is for us alone
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin = self._process.stdin.fileno()
        self._stdout = self._process.stdout.fileno()
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._stdout, False)

    def run(self) -> int:
        """Passes the output on until the process has ended; the status of the job."""
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(sig, self._on_signal)
        ended = os.pidfd_open(self._process.pid)
        selector = selectors.DefaultSelector()
        selector.register(wake_read, selectors.EVENT_READ, lambda: os.read(wake_read, 64))
        selector.register(ended, selectors.EVENT_READ, lambda: None)
        selector.register(self._stdout, selectors.EVENT_READ, self._relay)
        while self._process.poll() is None:
            for key, _ in selector.select(self._timeout_s()):
                if key.data() is False:
                    selector.unregister(key.fd)
            if self._deadline is not None and time.monotonic() >= self._deadline:
                self._on_deadline()
        while self._relay():
            pass
        if not self._ready:
            _write(bytes(self._before_ready))
        return self._status()

    def _timeout_s(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def _relay(self) -> bool:
        """Passes output on; False when there is no more."""
        try:
            data = os.read(self._stdout, CHUNK_BYTES)
        except BlockingIOError:
            return False
        more = bool(data)
        if not self._ready:
            self._before_ready += data
            self._answer_asked()
            data = bytes(self._before_ready) if self._ready else b""
        try:
            _write(data)
        except BrokenPipeError:  # our reader has left, as `| head` does
            self._stop(signal.SIGPIPE, tell=signal.SIGTERM)
            return False
        return more

    def _answer_asked(self) -> None:
        """Sends agent 0 the pieces of the job that it has asked for."""
        while not self._ready and ASK in self._before_ready:
            before, _, after = self._before_ready.partition(ASK)
            self._before_ready = before + after
            self._ready = not self._to_agent
            with suppress(BrokenPipeError):  # it is ending, which we shall see
                os.write(self._stdin, self._to_agent[:PIECE_BYTES])
            del self._to_agent[:PIECE_BYTES]
            if self._stopped_by is None and not self._gave_up:
                self._deadline = None

    def _on_signal(self, sig: int, _: object) -> None:
        if self._stopped_by is None:
            self._stop(sig, tell=sig)
        else:  # asked twice: the keepers or agents clean up after it
            self._process.kill()

    def _stop(self, sig: int, tell: int) -> None:
        """Has the agents end the ranks with the signal `tell`."""
        self._stopped_by = sig
        self._deadline = time.monotonic() + STOP_TIMEOUT_S
        if not self._ready:
            self._process.terminate()
            return
        try:
            os.write(self._stdin, b"%d\n" % tell)
        except (BrokenPipeError, BlockingIOError):
            self._process.terminate()

    def _on_deadline(self) -> None:
        if self._gave_up:
            self._deadline = None
            self._process.kill()
            return
        if self._stopped_by is None:
            names = ", ".join(host.name for host in self._job.hosts)
            say(
                f"the agents ({names}) are not up after {self._job.start_timeout_s:g} s "
                "(--start-timeout); --verbose shows the command that was to start them"
            )
        self._gave_up = True
        self._deadline = time.monotonic() + KILL_TIMEOUT_S
        self._process.terminate()

    def _status(self) -> int:
        status = self._process.returncode
        if self._stopped_by is not None:
            return 128 + self._stopped_by
        if status < 0:
            say(f"{self._name} was killed by {signal.Signals(-status).name}; the ranks were ended")
            return 128 - status
        if not self._ready:
            say(
                f"{self._name} ended (status {status}) before the agents were up; "
                "--verbose shows its command line"
            )
            return status or 1
        return status


def say(text: str) -> None:
    print(f"rdmarun: {text}", file=sys.stderr, flush=True)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
