"""One launch: the processes that start the agents, from start to end, and signals to rdmarun.

A job on several hosts has an mpiexec for each: a host that is lost takes only its own along.
The job goes to agent 0 through standard input, which stays open: its end says that rdmarun is gone.
Floor: launcher/command, in rdmarun. Thread: the main one.
"""

import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from rdmacoll.launcher.base.job import PIECE_BYTES, Job
from rdmacoll.launcher.base.report import signal_name
from rdmacoll.launcher.base.sink import Sink
from rdmacoll.launcher.keys.key import ASKS, Key, NotOfTheJob
from rdmacoll.launcher.keys.key_sharing import KeySharing
from rdmacoll.launcher.star.place import PLACE, Place

from .hub_watch import HubWatch
from .relay import Relay
from .returning import Returning
from .starter import Command, Starter

StartAgain = Callable[[int], tuple[Command, Callable[[], KeySharing] | None]]
# For the agents to end the ranks, the mount, the servers (each with 5 s of grace), and themselves.
STOP_TIMEOUT_S = 20.0
KILL_TIMEOUT_S = 5.0  # for the processes to end them when they do not answer
LEAVE_TIMEOUT_S = 2.0  # for the others to end after agent 0; those of lost hosts do not
# Of output that is held after a signal. mpiexec passes no signal on while nobody reads its output,
# so rdmarun then reads beyond the usual limit.
STOPPING_LIMIT_BYTES = 64 << 20
PATIENCE_S = 5.0  # after a signal: the longest that a reader of our output may take none of it
NO_PATIENCE_S = 0.5  # the same, after a second signal
FLUSH_TICK_S = 0.1  # between looks at whether the reader takes any
# Of an unfinished line that is held before the agents are up: it may become one of agent 0's.
HELD_BYTES = 4096


class Launch:
    """The starters of all agents."""

    def __init__(
        self,
        job: Job,
        key: Key,
        commands: Sequence[Command],
        up_by: float,
        on_up: Callable[[], None] = lambda: None,
        start_again: StartAgain | None = None,
    ) -> None:
        """commands: what to start, for agent 0 first.
        up_by: when the agents must be up (time.monotonic).
        on_up: called once all agents are up and have the job.
        start_again: how to do that with a lost host's; None where there are no others.
        """
        self._job = job
        self._key = key
        self._on_up = on_up
        self._start_again = start_again
        self._place_line = b""
        self._returning: dict[int, Returning] = {}
        self._to_agent = bytearray(key.seal("job", job.to_text()) + b"\n")
        self._held = bytearray()  # of a line that may be agent 0's; empty once it is ready
        self._ready = False
        self._gave_up = False
        self._failed: Starter | None = None  # that ended before the agents were up
        self._lost_output = False
        self._patience_s = PATIENCE_S
        self._stopped_by: int | None = None
        # Apart, because a handler of signals sets the second one at any time.
        self._up_by: float | None = up_by
        self._end_by: float | None = None
        self._selector = selectors.DefaultSelector()
        self._out = Sink(1, self._selector)
        self._err = Sink(2, self._selector)
        self._out.on_error = partial(self._on_error, "standard output")
        self._err.on_error = partial(self._on_error, "standard error")
        self._hub: HubWatch | None = None
        self._lost_hub = False
        self._starters: list[Starter] = []
        self._past: list[Starter] = []  # of lost hosts; kept, as their pipes may hold something
        self._relays: list[Relay] = []
        for agent, command in enumerate(commands):
            starter = Starter(command)
            self._starters.append(starter)
            self._watch(starter, agent)

    def run(self) -> int:
        """Passes the output on until all processes have ended; the status of the job."""
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(sig) != signal.SIG_IGN:  # as nohup has it
                signal.signal(sig, self._on_signal)
        self._selector.register(wake_read, selectors.EVENT_READ, lambda: os.read(wake_read, 64))
        while not self._is_over():
            self._select(self._timeout_s())
            if self._hub is not None:
                self._hub.poll()  # its deadline may have come
            if (at := self._deadline) is not None and at <= time.monotonic():
                self._on_deadline()
        for returning in self._returning.values():
            returning.end()
        for relay in self._relays:
            relay.finish()
        self._out.write(bytes(self._held))
        self._flush(self._out)
        status = self._status()
        self._flush(self._err)
        return status or (os.EX_IOERR if self._lost_output else 0)

    def _watch(self, starter: Starter, agent: int) -> None:
        take = self._take if agent == 0 else lambda data: data
        self._relays.append(Relay(starter.stdout, self._out, self._selector, take))
        self._relays.append(Relay(starter.stderr, self._err, self._selector))
        ended = os.pidfd_open(starter.pid)
        self._selector.register(
            ended, selectors.EVENT_READ, lambda: self._selector.unregister(ended)
        )

    def _is_over(self) -> bool:
        """Whether all have ended. When agent 0's has, or any before all are up, the rest must."""
        first, *others = self._starters
        ended = [starter for starter in self._starters if starter.status is not None]
        if not self._ready and ended:
            self._relays[0].finish()  # a short job may have ended before this has been read
        if not self._ready and ended and self._failed is None and self._stopped_by is None:
            self._failed = ended[0]
            self._give_up()
        elif first in ended and self._end_by is None and others:
            self._end_by = time.monotonic() + LEAVE_TIMEOUT_S
        return len(ended) == len(self._starters)

    def _select(self, timeout_s: float | None) -> None:
        for key, _ in self._selector.select(timeout_s):
            key.data()

    @property
    def _deadline(self) -> float | None:
        return self._up_by if self._end_by is None else self._end_by

    def _timeout_s(self) -> float | None:
        both = self._deadline, self._hub.deadline if self._hub is not None else None
        deadlines = [at for at in both if at is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

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
        if line.endswith(self._key.ask_line):
            self._send_piece()
            return line.removesuffix(self._key.ask_line)
        if PLACE in line:
            return self._pass_place_on(line)
        if line.startswith(ASKS):
            self._refuse()
        return line

    def _pass_place_on(self, line: bytes) -> bytes:
        users, prefix, sealed = line.rpartition(PLACE)
        try:
            place = Place.from_line(prefix + sealed, self._key)
        except NotOfTheJob:
            self._refuse()
            return line
        self._place_line = prefix + sealed
        for starter in self._starters[1:]:
            starter.tell(self._place_line)
        seat, obey = len(self._starters), (self._lose_hub, self._bring_back, self._take_back)
        try:
            self._hub = HubWatch(self._key, place, seat, self._selector, *obey)
        except OSError as error:
            self._err.say(f"{error}; let this host connect there")
            self._give_up()
        return users

    def _bring_back(self, agent: int) -> None:
        """Agent 0 asks for it: the agent there is lost."""
        assert self._start_again is not None
        self._starters[agent].kill()  # it may wait for the host for ever
        command, share_key = self._start_again(agent)
        host = self._job.hosts[agent].name

        def say(why: str) -> None:
            self._err.say(f"host {host} is not back yet, and is tried again and again: {why}")

        line, selector = self._place_line, self._selector
        self._returning[agent] = Returning(command, line, share_key, selector, say)

    def _take_back(self, agent: int) -> None:
        self._past.append(self._starters[agent])
        self._starters[agent] = self._returning.pop(agent).is_back()
        self._watch(self._starters[agent], agent)

    def _lose_hub(self, why: str) -> None:
        """The other agents lose it, too, and end their ranks and themselves."""
        if not self._ready or self._gave_up or self._stopped_by is not None:
            return  # which ends all, too
        self._lost_hub = True
        host = self._job.hosts[0].name
        self._err.say(f"host {host} ({self._job.ranks_of(0)}) is lost: {why}")
        self._end_by = time.monotonic() + LEAVE_TIMEOUT_S

    def _refuse(self) -> None:
        if not self._gave_up:
            self._err.say(
                f"who asks for the job as its agent on {self._job.hosts[0].name} does not know the "
                "job's key, and is not told it: somebody else has come in its place"
            )
            self._give_up()

    def _send_piece(self) -> None:
        """Sends agent 0 the next piece of the job, or learns that it has them all."""
        self._ready = not self._to_agent
        self._starters[0].tell(bytes(self._to_agent[:PIECE_BYTES]))
        del self._to_agent[:PIECE_BYTES]
        self._up_by = None
        if self._ready:
            self._on_up()

    def _on_signal(self, sig: int, _: object) -> None:
        if self._stopped_by in (None, signal.SIGPIPE):  # the user's first: _on_error has no other
            self._stop(sig)
        else:  # the second signal; keepers and agents clean up after the process
            self._patience_s = NO_PATIENCE_S
            self._kill()

    def _stop(self, sig: int) -> None:
        """Tells the agents to end the ranks with this signal."""
        self._stopped_by = sig
        for sink in self._out, self._err:
            sink.raise_limit(STOPPING_LIMIT_BYTES)
        self._end_by = time.monotonic() + STOP_TIMEOUT_S
        if not (self._ready and self._starters[0].order(b"%d\n" % sig)):
            self._terminate()

    def _on_deadline(self) -> None:
        if self._gave_up or self._lost_hub or self._starters[0].status is not None:
            self._up_by = self._end_by = None
            self._kill()
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
        self._terminate()

    def _terminate(self) -> None:
        for starter in self._starters:
            starter.terminate()

    def _kill(self) -> None:
        for starter in self._starters:
            starter.kill()

    def _status(self) -> int:
        """Agent 0's, which is the job's; or that of who kept it from starting."""
        starter = self._failed or self._starters[0]
        status = starter.status
        assert status is not None
        if self._stopped_by is not None:
            return 128 + self._stopped_by
        if self._lost_hub:
            return 1
        if status < 0:
            self._err.say(
                f"{starter.name} was killed by {signal_name(-status)}; the ranks were ended"
            )
            return 128 - status
        if not self._ready:
            self._err.say(
                f"{starter.name} ended (status {status}) before the agents were up; "
                f"{starter.hint() or '--verbose shows its command line'}"
            )
            return status or 1
        return status


def say(text: str) -> None:
    """A line of rdmarun's own, for as long as there is no Launch."""
    with suppress(OSError):
        os.write(2, f"rdmarun: {text}\n".encode(errors="backslashreplace"))
