"""One launch: the process that starts the agents, from its start to its end; signals to rdmarun.

That process is mpiexec or, for a job on one host, the agent itself. The job goes to the agents
through its standard input, which stays open: its end tells them that rdmarun is gone.
Floor: launcher/command, in rdmarun. Thread: the main one.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from rdmacoll.launcher.base.job import PIECE_BYTES, Job
from rdmacoll.launcher.base.limits import OWN_DESCRIPTORS, give_users_descriptors
from rdmacoll.launcher.base.report import signal_name
from rdmacoll.launcher.base.sink import Sink
from rdmacoll.launcher.keys.key import ASKS, Key

from .relay import Relay

STOP_TIMEOUT_S = 15.0  # for the agents to end the ranks (5 s of grace) and themselves
KILL_TIMEOUT_S = 5.0  # for the process to end them when they do not answer
# Of output that is held after a signal. mpiexec passes no signal on while nobody reads its output,
# so rdmarun then reads beyond the usual limit.
STOPPING_LIMIT_BYTES = 64 << 20
PATIENCE_S = 5.0  # after a signal: the longest that a reader of our output may take none of it
NO_PATIENCE_S = 0.5  # the same, after a second signal
FLUSH_TICK_S = 0.1  # between looks at whether the reader takes any
# Of an unfinished line that is held before the agents are up: it may become one of agent 0's.
HELD_BYTES = 4096


class Launch:
    """The process that starts the agents; messages call it `name`."""

    def __init__(
        self,
        job: Job,
        key: Key,
        name: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        up_by: float,
        on_up: Callable[[], None] = lambda: None,
    ) -> None:
        """up_by: when the agents must be up (time.monotonic).
        on_up: called once all agents are up and have the job.
        """
        self._job = job
        self._name = name
        self._ask_line = key.ask_line
        self._on_up = on_up
        self._to_agent = bytearray(key.seal("job", job.to_text()) + b"\n")
        self._held = bytearray()  # of a line that may be agent 0's; empty once it is ready
        self._ready = False
        self._gave_up = False
        self._lost_output = False
        self._patience_s = PATIENCE_S
        self._stopped_by: int | None = None
        # Apart, because a handler of signals sets the second one at any time.
        self._up_by: float | None = up_by
        self._end_by: float | None = None
        self._selector = selectors.DefaultSelector()
        self._out = Sink(1, self._selector)
        self._err = Sink(2, self._selector)
        self._process = subprocess.Popen(
            list(argv),
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # the terminal's Ctrl-C is for us alone
            preexec_fn=partial(give_users_descriptors, OWN_DESCRIPTORS),
        )
        assert self._process.stdin is not None
        self._stdin = self._process.stdin.fileno()
        os.set_blocking(self._stdin, False)

    def run(self) -> int:
        """Passes the output on until the process has ended; the status of the job."""
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(sig) != signal.SIG_IGN:  # as nohup has it
                signal.signal(sig, self._on_signal)
        ended = os.pidfd_open(self._process.pid)
        self._selector.register(wake_read, selectors.EVENT_READ, lambda: os.read(wake_read, 64))
        self._selector.register(ended, selectors.EVENT_READ, lambda: None)
        relays = self._relays()
        while self._process.poll() is None:
            self._select(self._timeout_s())
            if self._timeout_s() == 0:
                self._on_deadline()
        for relay in relays:
            relay.finish()
        self._out.write(bytes(self._held))
        self._flush(self._out)
        status = self._status()
        self._flush(self._err)
        return status or (os.EX_IOERR if self._lost_output else 0)

    def _select(self, timeout_s: float | None) -> None:
        for key, _ in self._selector.select(timeout_s):
            key.data()

    def _timeout_s(self) -> float | None:
        deadline = self._up_by if self._end_by is None else self._end_by
        return None if deadline is None else max(0.0, deadline - time.monotonic())

    def _relays(self) -> tuple[Relay, Relay]:
        assert self._process.stdout is not None and self._process.stderr is not None
        self._out.on_error = partial(self._on_error, "standard output")
        self._err.on_error = partial(self._on_error, "standard error")
        return (
            Relay(self._process.stdout.fileno(), self._out, self._selector, self._take),
            Relay(self._process.stderr.fileno(), self._err, self._selector),
        )

    def _take(self, data: bytes) -> bytes:
        """The part of the output that is for the user."""
        if self._ready:
            return data
        self._held += data
        said = bytearray()
        while not self._ready and (end := self._held.find(b"\n") + 1):
            line = bytes(self._held[:end])
            del self._held[:end]
            said += self._answer(line)
        count = max(0, len(self._held) - (0 if self._ready else HELD_BYTES))
        said += self._held[:count]
        del self._held[:count]
        return bytes(said)

    def _on_error(self, name: str, error: OSError) -> None:
        if isinstance(error, BrokenPipeError | ConnectionResetError):  # as `| head` does
            if self._stopped_by is None:
                self._stop(signal.SIGPIPE)
            return
        self._lost_output = True
        self._err.say(f"{name}: {error.strerror}; the rest of it is lost, the job goes on")

    def _flush(self, sink: Sink) -> None:
        """Waits until the reader has taken all; after a signal, while it goes on taking some."""
        left, since = sink.pending_bytes, time.monotonic()
        while not sink.flush(FLUSH_TICK_S):
            now = time.monotonic()
            if self._stopped_by is None or sink.pending_bytes < left:
                left, since = sink.pending_bytes, now
            elif now - since > self._patience_s:
                self._err.say(f"the last {left} bytes of output are lost: nobody reads them")
                return
        self._select(0)  # on_error, if its last write has failed

    def _answer(self, line: bytes) -> bytes:
        """The part of the line that is for the user. Who asks for the job in it gets an answer."""
        if line.endswith(self._ask_line):
            self._send_piece()
            return line.removesuffix(self._ask_line)
        if line.startswith(ASKS) and not self._gave_up:
            self._err.say(
                f"who asks for the job as its agent on {self._job.hosts[0].name} does not know the "
                "job's key, and is not told it: somebody else has come in its place"
            )
            self._give_up()
        return line

    def _send_piece(self) -> None:
        """Sends agent 0 the next piece of the job, or learns that it has them all."""
        self._ready = not self._to_agent
        with suppress(BrokenPipeError):  # the process is ending, which run() sees
            os.write(self._stdin, self._to_agent[:PIECE_BYTES])
        del self._to_agent[:PIECE_BYTES]
        self._up_by = None
        if self._ready:
            self._on_up()

    def _on_signal(self, sig: int, _: object) -> None:
        if self._stopped_by in (None, signal.SIGPIPE):  # the user's first: _on_error has no other
            self._stop(sig)
        else:  # the second signal; keepers and agents clean up after the process
            self._patience_s = NO_PATIENCE_S
            self._process.kill()

    def _stop(self, sig: int) -> None:
        """Tells the agents to end the ranks with this signal."""
        self._stopped_by = sig
        for sink in self._out, self._err:
            sink.raise_limit(STOPPING_LIMIT_BYTES)
        self._end_by = time.monotonic() + STOP_TIMEOUT_S
        if not self._ready:
            self._process.terminate()
            return
        try:
            os.write(self._stdin, b"%d\n" % sig)
        except (BrokenPipeError, BlockingIOError):
            self._process.terminate()

    def _on_deadline(self) -> None:
        if self._gave_up:
            self._up_by = self._end_by = None
            self._process.kill()
            return
        if self._stopped_by is None:
            names = ", ".join(host.name for host in self._job.hosts)
            self._err.say(
                f"the agents ({names}) are not up after {self._job.start_timeout_s:g} s "
                "(--start-timeout); --verbose shows the command that was to start them"
            )
        self._give_up()

    def _give_up(self) -> None:
        self._gave_up = True
        self._end_by = time.monotonic() + KILL_TIMEOUT_S
        self._process.terminate()

    def _status(self) -> int:
        status = self._process.returncode
        if self._stopped_by is not None:
            return 128 + self._stopped_by
        if status < 0:
            self._err.say(
                f"{self._name} was killed by {signal_name(-status)}; the ranks were ended"
            )
            return 128 - status
        if not self._ready:
            self._err.say(
                f"{self._name} ended (status {status}) before the agents were up; "
                "--verbose shows its command line"
            )
            return status or 1
        return status


def say(text: str) -> None:
    """A line of rdmarun's own, for as long as there is no Launch."""
    with suppress(OSError):
        os.write(2, f"rdmarun: {text}\n".encode(errors="backslashreplace"))
