"""The supervisor: an agent's loop over its ranks, its sockets and the table of all agents.

Floor: launcher/agent. Thread: the agent's main one; nothing in the loop blocks.
"""

import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from rdmacoll.launcher.base.cause import Cause, Why
from rdmacoll.launcher.base.comm import Comm, Gatherer, Gathering
from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.limits import make_room
from rdmacoll.launcher.base.processes import kill_descendants, reap
from rdmacoll.launcher.base.report import Failure, describe, failure_lines
from rdmacoll.launcher.base.sink import Sink
from rdmacoll.launcher.keys.key import Trust
from rdmacoll.launcher.star.hub import Hub, Loss

from . import store
from .dumps import Dumps
from .helpers import Helpers
from .losses import Losses
from .missed import Missed
from .outlets import Outlets
from .rank_env import Attempt
from .ranks import GRACE_S, Ranks
from .rendezvous import Rendezvous, unpack
from .table import Record, Table, pack

TICK_S = 0.02  # between looks at an exchange over MPI, which no selector could watch
HOST_LOST_GRACE_S = 2.0  # for ranks to end: up to 5 s have passed before that was noticed
FIRST_GROUP = 2  # exchanges that the first group takes: of nonces, and of cards


class Supervisor:
    """One agent's share of the job, from one start of the ranks to their end."""

    def __init__(
        self, comm: Comm, cards: Gatherer, trust: Trust, job: Job, attempt: Attempt
    ) -> None:
        """cards: carries the cards of the first group."""
        self._comm = comm
        self._hub = comm if isinstance(comm, Hub) else None
        self._trust = trust
        self._cards = cards
        self._job = job
        self._attempt = attempt
        self._me = comm.rank
        self._selector = selectors.DefaultSelector()
        if (fd := comm.fileno()) is not None:
            self._selector.register(fd, selectors.EVENT_READ, comm.poll)
        self.out = Sink(1, self._selector, in_packets=comm.size > 1)
        self.err = Sink(2, self._selector, in_packets=comm.size > 1)
        first = job.first_rank(self._me)
        self._own = range(first, first + job.hosts[self._me].slots)
        self._outlets = Outlets(job, self._selector, self.out, self.err)
        self._helpers = Helpers(job, self._me, attempt, self._outlets)
        self._ranks = Ranks(job, self._me, self._selector, self._outlets, self._helpers)
        self._dumps = Dumps(comm, job, self._ranks.live_pids, self._selector)
        self._rendezvous = Rendezvous(
            self._own,
            job.world,
            attempt,
            self._ranks.rank_of,
            self._helpers.helper_of,
            self._helpers.note_there,
            self._selector,
            self._dumps.ask,
        )
        self._table = Table(comm)
        self._gather: Gathering | None = None
        self._store: subprocess.Popen[bytes] | None = None
        self._late_at: float | None = None
        self._seen = Cause()  # the first reason seen here that is no rank's failure
        self._last: Sequence[Record] = []  # the table that was acted on last
        self.cause = Cause()  # the one that all agreed on
        self.late: list[int] = []  # ranks that an exchange waited for when the job was ended
        self.stopped = False  # whether agent 0 has read that rdmarun wants the end, or is gone
        self.losses = Losses(job, self._me, attempt.number)

    def start(
        self, listener: socket.socket | None, woken: int, missed: Missed | None = None
    ) -> None:
        """Starts this host's helpers and ranks, and on host 0 the store, which takes the listener
        over.

        woken: readable after SIGCHLD. missed: if the host was lost, and the ranks are to join.
        """
        self._selector.register(woken, selectors.EVENT_READ, lambda: os.read(woken, 4096))
        if listener is not None:
            self._store = store.start(listener, self._attempt.master)
        attempt = self._attempt
        if missed is not None:
            self.losses.take_over(missed.counts, self._own)
            self._rendezvous.exchange = missed.exchange
            attempt = replace(attempt, number=missed.counts.restarts)
        others = self._comm.size - 1 if self._me == 0 else 0
        times_lost = self.losses.times_lost[self._me]
        try:
            make_room(ranks=len(self._own), helpers=self._helpers.count, hosts=others)
            self._helpers.start(self._rendezvous.address, times_lost)
            self._ranks.start(attempt, self._rendezvous.address, self._rendezvous.exchange > 0)
        except OSError as error:
            self._cannot_start(self._own[0], error)

    def _cannot_start(self, rank: int, error: OSError) -> None:
        self.err.say(f"host {self._host}: {error}")
        self._blame(Why.NO_START, rank)

    def watch_control(self, fd: int) -> None:
        """Obeys rdmarun: a line with the number of a signal stops the job, so does the end."""

        def on_readable() -> None:
            self.stopped = True
            line = os.read(fd, 64)
            if line:
                self._blame(Why.STOPPED, status=int(line.split()[0]))
            else:
                self._blame(Why.ABANDONED)
                self._selector.unregister(fd)

        self._selector.register(fd, selectors.EVENT_READ, on_readable)

    def run(self) -> None:
        """Returns when all ranks of all hosts have ended, on all agents with the same table, and
        then the helpers of this host."""
        while not self._turn():
            self._wait(self._late_at, self._ranks, self._helpers, self._rendezvous, self._dumps)
        self._helpers.end(self._grace_s)
        while self._helpers.live:
            self._wait(None, self._helpers)
            self._reap()
            self._helpers.poll()
        kill_descendants()
        self._ranks.close()
        self._helpers.close()

    def _turn(self) -> bool:
        """Does what there is to do. True: the job is over."""
        self._reap()
        self._poll_processes()
        self._rendezvous.poll()
        self._dumps.poll()
        if self._late_at is not None and time.monotonic() >= self._late_at:
            self._blame(Why.LATE)
        if self._hub is not None:
            for loss in self._hub.losses():
                self._take_loss(self._hub, loss)
        while True:
            if self._gather is not None and (payloads := self._gather.test()) is not None:
                self._finish_exchange(payloads)
            table = self._table.step(self._record())
            if table is None:
                self._welcome()
                return False
            if self._act_on(table):
                return True

    def close(self) -> None:
        """After run(), on all agents; then there may be another supervisor.

        Waits until the output is read. After a signal rdmarun reads it, so signals need no answer
        here.
        """
        for sink in self.out, self.err:
            sink.flush()
            sink.close()
        self._rendezvous.close()
        self._dumps.close()
        self._selector.close()

    @property
    def is_short(self) -> bool:
        """Whether agent 0 knows of a host that is lost, and not back."""
        return self._hub is not None and self._hub.is_short

    @property
    def lost_output(self) -> bool:
        return self._outlets.lost_output

    @property
    def _host(self) -> str:
        return self._job.hosts[self._me].name

    @property
    def _grace_s(self) -> float:
        return HOST_LOST_GRACE_S if self.cause.why is Why.HOST_LOST else GRACE_S

    def _wait(self, until: float | None, *parts: Ranks | Helpers | Rendezvous | Dumps) -> None:
        """Until something comes that there is to do, or a deadline of these parts."""
        deadlines = [at for at in (until, *(p.deadline for p in (self._comm, *parts))) if at]
        if self._gather is not None and self._gather.must_be_tested:
            deadlines.append(time.monotonic() + TICK_S)
        left_s = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
        for key, _ in self._selector.select(left_s):
            key.data()
        self._comm.poll()  # also for what its deadline is for

    def _blame(self, why: Why, rank: int = -1, status: int = 0) -> None:
        if self._seen.why is Why.RUNNING:
            self._seen = Cause(why, rank, status, time.time_ns())

    @property
    def _mine(self) -> Cause:
        # A failure that the job can live with gives way to what it cannot.
        failed, seen = self.losses.cause, self._seen
        if failed.why is Why.RUNNING or seen.why is Why.RUNNING:
            return failed if seen.why is Why.RUNNING else seen
        if self._job.fewest < self._job.world:
            return seen
        return min(failed, seen, key=lambda cause: cause.time_ns)

    def _take_loss(self, hub: Hub, loss: Loss) -> None:
        """Agent 0 says it to the user, and to the others in the lost one's place in the table."""
        if loss.agent == self._comm.size:
            self.stopped = True
            self._blame(Why.ABANDONED)
            return
        self._say_loss(loss)
        last = self._last[loss.agent] if self._last else None
        if last is not None and last.live == 0:  # its ranks had ended, and no more was to come
            record = last.lost()
        else:
            record = self._missing_host(loss.agent, -1)
        hub.put_for(loss.agent, pack(record))

    def hear_late_losses(self, failed: Collection[int]) -> None:
        """After run(), on agent 0; failed: the ranks whose last words have come. Where the one at
        fault is not among them, it has gone down with its host, and so has the job."""
        if self._hub is None:
            return
        for loss in self._hub.losses():
            if loss.agent < self._comm.size:
                self._say_loss(loss)
        if self.cause.of_a_rank and self.cause.rank not in failed:
            agent = self._job.agent_of(self.cause.rank)
            if self._hub.is_lost(agent):
                self.cause = self._missing_host(agent, -1).cause

    def _say_loss(self, loss: Loss) -> None:
        name = self._job.hosts[loss.agent].name
        self.err.say(f"host {name} ({self._job.ranks_of(loss.agent)}) is lost: {loss.why}")

    def _welcome(self) -> None:
        """Agent 0 does it when it has acted on all tables: so who is back acts on the next."""
        if self._hub is None or not self._hub.returned or self._gather is not None:
            return
        exchange, counts = self._rendezvous.exchange, self.losses.counts
        for agent in self._hub.returned:  # so all see that it is back, also if it is lost at once
            self._hub.put_for(agent, pack(self._missing_host(agent, exchange)))
        missed = Missed(self._job, self._trust, self._attempt, exchange, counts)
        self._hub.welcome(missed.to_text())

    def _missing_host(self, agent: int, exchange: int) -> Record:
        """The record of one whose ranks are all missing; exchange -1: it is lost."""
        cause = Cause(Why.HOST_LOST, self._job.first_rank(agent), 0, time.time_ns())
        slots = self._job.hosts[agent].slots
        return Record(self._attempt.number, 0, 0, slots, exchange, frozenset(), 0, cause)

    def _reap(self) -> None:
        for pid, returncode in reap(self._ranks.pids | self._helpers.pids):
            if self._helpers.ended(pid, returncode, may_restart=not self._ranks.ending):
                continue
            rank = self._ranks.ended(pid, returncode)
            if rank is None:
                if self._store is not None and pid == self._store.pid:
                    self._store.returncode = returncode
                    self._blame(Why.NO_STORE, status=returncode)
            elif returncode != 0 and not self._ranks.ending:
                tail = list(rank.stderr.tail)
                failure = Failure(rank.rank, self._host, pid, returncode, time.time_ns(), tail)
                self.losses.add(failure)

    def _poll_processes(self) -> None:
        try:
            self._helpers.poll()
            self._ranks.poll()
        except OSError as error:
            self._cannot_start(self._own[0], error)

    def _record(self) -> Record:
        payloads = self._rendezvous.payloads()
        self.losses.back(self._rendezvous.joined)
        self._rendezvous.joined.clear()
        return Record(
            start=self._attempt.number,
            live=self._ranks.unended,
            failures=len(self.losses.failures),
            missing=self.losses.missing,
            exchange=self._rendezvous.exchange,
            arrived=self._rendezvous.arrived,
            payload_bytes=len(payloads or b""),
            cause=self._mine,
        )

    def _act_on(self, table: Sequence[Record]) -> bool:
        """What all agents decide on the same table. True: the job is over."""
        exchange = self._rendezvous.exchange
        self._last = table
        present = [record for record in table if record.exchange == exchange]
        arrived = frozenset[int]().union(*(record.arrived for record in present))
        causes = [record.cause for record in table if record.cause.why is not Why.RUNNING]
        left = self._job.world - sum(record.missing for record in table)
        if left >= self._job.fewest:
            causes = [cause for cause in causes if cause.why not in (Why.FAILED, Why.HOST_LOST)]
            self._go_on_without(table, left)
        if causes and self.cause.why is Why.RUNNING:
            self._end(min(causes, key=lambda cause: cause.time_ns), arrived)
        if arrived and self.cause.why is Why.RUNNING:
            self._blame_lost_hosts(table, arrived)
            if self._gather is None:
                self._go_on_with_exchange(table, arrived)
        return all(record.live == 0 for record in table)

    def _go_on_without(self, table: Sequence[Record], left: int) -> None:
        """Says so of this host's new failures, and starts again whom it may."""
        may_restart = self.cause.why is Why.RUNNING and any(record.live for record in table)
        failures = [record.failures for record in table]
        go_on = f"{left} of {self._job.world} ranks are left and go on (--min-np)"
        for failure, number in self.losses.answer(failures, may_restart):
            for line in failure_lines([failure]):
                self.err.say(line)
            self.err.say(go_on)
            if number is not None:
                self._start_again(failure.rank, number)
        lost = [record.is_lost and record.missing > 0 for record in table]
        for agent, number in self.losses.answer_lost(lost, may_restart):
            if self._hub is not None:
                self.err.say(go_on)
                if number is not None:
                    self._start_host_again(self._hub, agent, number)

    def _start_host_again(self, hub: Hub, agent: int, number: int) -> None:
        restart = f"restart {number} of {self._job.max_restarts}"
        name = self._job.hosts[agent].name
        self.err.say(f"starting {self._job.ranks_of(agent)} again when {name} is back ({restart})")
        hub.ask_for_start(agent)

    def _start_again(self, rank: int, number: int) -> None:
        self.err.say(f"starting rank {rank} again (restart {number} of {self._job.max_restarts})")
        # Before the first group is made it is one of those who make it.
        joins = self._rendezvous.exchange > 0 or self._gather is not None
        try:
            attempt = replace(self._attempt, number=number)
            self._ranks.start_again(rank, attempt, self._rendezvous.address, joins)
        except OSError as error:
            self._cannot_start(rank, error)

    def _go_on_with_exchange(self, table: Sequence[Record], arrived: frozenset[int]) -> None:
        payloads = self._rendezvous.payloads()
        if payloads is not None and len(arrived) == self._job.world:
            lengths = [record.payload_bytes for record in table]
            carrier = self._cards if self._rendezvous.exchange < FIRST_GROUP else self._comm
            self._gather = carrier.begin_gathering(payloads, lengths)
            self._late_at = None
            return
        if self._late_at is None and self._rendezvous.exchange == 0:
            self._late_at = time.monotonic() + self._job.start_timeout_s
        may_come = arrived | (self.losses.unanswered if self._job.elastic else set())
        for rank in self._ranks:
            if rank.returncode is not None and rank.rank not in may_come:
                self._blame(Why.ABSENT, rank.rank, rank.returncode)

    def _blame_lost_hosts(self, table: Sequence[Record], arrived: frozenset[int]) -> None:
        """They will not come to the exchange that others wait in."""
        for agent, record in enumerate(table):
            first = self._job.first_rank(agent)
            if record.is_lost and record.missing and first not in arrived:
                self._blame(Why.ABSENT, first, 1)

    def _finish_exchange(self, payloads: bytes) -> None:
        self._gather = None
        of_all = unpack(payloads)
        if len(of_all) < self._job.world:  # a host was lost, which the table says
            return
        if self._job.verbose and self._me == 0:
            self.err.say(f"exchange {self._rendezvous.exchange}: {len(payloads)} bytes of payloads")
        if self._rendezvous.exchange == 0:  # who was started again before it is in the first group
            self.losses.back(rank.rank for rank in self._ranks.live)
        self._rendezvous.complete(of_all)

    def _end(self, cause: Cause, arrived: frozenset[int]) -> None:
        self.cause = cause
        self.late = sorted(set(range(self._job.world)) - arrived)
        # SIGPIPE says that nobody reads our output any more. Python ignores it, so the ranks get
        # SIGTERM instead.
        stopped = cause.why is Why.STOPPED and cause.status != signal.SIGPIPE
        sig = signal.Signals(cause.status) if stopped else signal.SIGTERM
        self._ranks.end(sig, self._grace_s)
        self._late_at = None
        self._rendezvous.fail(f"the job is ending: {describe(cause, self._job, self.late)}")
