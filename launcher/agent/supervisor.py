"""The supervisor: an agent's loop over its ranks, its sockets and the table of all agents.

Floor: launcher/agent. Thread: the agent's main one; nothing in the loop blocks.
"""

import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace

from rdmacoll.launcher.base.cause import Cause, Why
from rdmacoll.launcher.base.comm import Comm, Gathering
from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.processes import kill_descendants, reap
from rdmacoll.launcher.base.report import Failure, describe, failure_lines
from rdmacoll.launcher.base.sink import Sink

from . import store
from .losses import Losses
from .rank_env import Attempt
from .ranks import Ranks
from .rendezvous import Rendezvous, unpack
from .table import Record, Table

TICK_S = 0.02  # between looks at what other agents say: MPI has nothing that a selector could watch


class Supervisor:
    """One agent's share of the job, from one start of the ranks to their end."""

    def __init__(self, comm: Comm, job: Job, attempt: Attempt) -> None:
        self._comm = comm
        self._job = job
        self._attempt = attempt
        self._me = comm.rank
        self._selector = selectors.DefaultSelector()
        self.out = Sink(1, self._selector, in_packets=comm.size > 1)
        self.err = Sink(2, self._selector, in_packets=comm.size > 1)
        first = job.first_rank(self._me)
        self._own = range(first, first + job.hosts[self._me].slots)
        self._ranks = Ranks(job, self._me, self._selector, self.out, self.err)
        self._rendezvous = Rendezvous(self._own, job.world, attempt, self._rank_of, self._selector)
        self._table = Table(comm, job.world)
        self._gather: Gathering | None = None
        self._store: subprocess.Popen[bytes] | None = None
        self._late_at: float | None = None
        self._seen = Cause()  # the first reason seen here that is no rank's failure
        self._told = Cause()  # what all know of it
        self.cause = Cause()  # the one that all agreed on
        self.late: list[int] = []  # ranks that an exchange waited for when the job was ended
        self.stopped = False  # whether agent 0 has read that rdmarun wants the end, or is gone
        self.losses = Losses(job, self._me, attempt.number)

    def start(self, listener: socket.socket | None, woken: int) -> None:
        """Starts this host's ranks, and on host 0 the store, which takes the listener over.

        woken: readable after SIGCHLD.
        """
        self._selector.register(woken, selectors.EVENT_READ, lambda: os.read(woken, 4096))
        if listener is not None:
            self._store = store.start(listener, self._attempt.master)
        try:
            self._ranks.start(self._attempt, self._rendezvous.address)
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
        """Returns when all ranks of all hosts have ended, on all agents in the same round."""
        while True:
            for key, _ in self._selector.select(self._timeout_s()):
                key.data()
            self._reap()
            self._poll_ranks()
            self._rendezvous.poll()
            if self._late_at is not None and time.monotonic() >= self._late_at:
                self._blame(Why.LATE)
            if self._gather is not None and (payloads := self._gather.test()) is not None:
                self._finish_exchange(payloads)
            table = self._table.step(self._record())
            if table is not None:
                self._told = table[self._me].cause
                if self._act_on(table):
                    break
        if self._gather is not None:  # all began it, so it ends
            self._gather.wait()
        kill_descendants()
        self._ranks.close()

    def close(self) -> None:
        """After run(), on all agents; then there may be another supervisor.

        Waits until the output is read. After a signal rdmarun reads it, so signals need no answer
        here.
        """
        for sink in self.out, self.err:
            sink.flush()
            sink.close()
        self._rendezvous.close()
        self._table.close()
        self._selector.close()

    @property
    def lost_output(self) -> bool:
        return self._ranks.lost_output

    @property
    def _host(self) -> str:
        return self._job.hosts[self._me].name

    def _timeout_s(self) -> float | None:
        if self._comm.size > 1:
            return TICK_S
        if self._gather is not None:
            return 0.0  # the only agent's gathering is complete already
        if self._mine != self._told and self.cause.why is Why.RUNNING:
            return 0.0  # noticed while acting on the table: nothing else may ever wake us
        all_deadlines = self._ranks.deadline, self._rendezvous.deadline, self._late_at
        deadlines = [at for at in all_deadlines if at is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _rank_of(self, pid: int) -> int | None:
        return next((rank.rank for rank in self._ranks.live if rank.pid == pid), None)

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

    def _reap(self) -> None:
        for pid, returncode in reap(self._ranks.pids):
            rank = self._ranks.ended(pid, returncode)
            if rank is None:
                if self._store is not None and pid == self._store.pid:
                    self._store.returncode = returncode
                    self._blame(Why.NO_STORE, status=returncode)
            elif returncode != 0 and not self._ranks.ending:
                tail = list(rank.stderr.tail)
                failure = Failure(rank.rank, self._host, pid, returncode, time.time_ns(), tail)
                self.losses.add(failure)

    def _poll_ranks(self) -> None:
        try:
            self._ranks.poll()
        except OSError as error:
            self._cannot_start(self._own[0], error)

    def _record(self) -> Record:
        payloads = self._rendezvous.payloads()
        self.losses.back(self._rendezvous.joined)
        self._rendezvous.joined.clear()
        return Record(
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
        present = [record for record in table if record.exchange == exchange]
        arrived = frozenset[int]().union(*(record.arrived for record in present))
        causes = [record.cause for record in table if record.cause.why is not Why.RUNNING]
        left = self._job.world - sum(record.missing for record in table)
        if left >= self._job.fewest:
            causes = [cause for cause in causes if cause.why is not Why.FAILED]
            self._go_on_without(table, left)
        if causes and self.cause.why is Why.RUNNING:
            self._end(min(causes, key=lambda cause: cause.time_ns), arrived)
        if arrived and self.cause.why is Why.RUNNING and self._gather is None:
            self._go_on_with_exchange(table, arrived)
        return all(record.live == 0 for record in table)

    def _go_on_without(self, table: Sequence[Record], left: int) -> None:
        """Says so of this host's new failures, and starts again whom it may."""
        may_restart = self.cause.why is Why.RUNNING and any(record.live for record in table)
        failures = [record.failures for record in table]
        for failure, number in self.losses.answer(failures, may_restart):
            for line in failure_lines([failure]):
                self.err.say(line)
            self.err.say(f"{left} of {self._job.world} ranks are left and go on (--min-np)")
            if number is not None:
                self._start_again(failure.rank, number)

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
            self._gather = self._comm.begin_gathering(payloads, lengths)
            self._late_at = None
            return
        if self._late_at is None and self._rendezvous.exchange == 0:
            self._late_at = time.monotonic() + self._job.start_timeout_s
        may_come = arrived | (self.losses.unanswered if self._job.elastic else set())
        for rank in self._ranks:
            if rank.returncode is not None and rank.rank not in may_come:
                self._blame(Why.ABSENT, rank.rank, rank.returncode)

    def _finish_exchange(self, payloads: bytes) -> None:
        self._gather = None
        if self._job.verbose and self._me == 0:
            self.err.say(f"exchange {self._rendezvous.exchange}: {len(payloads)} bytes of payloads")
        if self._rendezvous.exchange == 0:  # who was started again before it is in the first group
            self.losses.back(rank.rank for rank in self._ranks.live)
        self._rendezvous.complete(unpack(payloads))

    def _end(self, cause: Cause, arrived: frozenset[int]) -> None:
        self.cause = cause
        self.late = sorted(set(range(self._job.world)) - arrived)
        # SIGPIPE says that nobody reads our output any more. Python ignores it, so the ranks get
        # SIGTERM instead.
        stopped = cause.why is Why.STOPPED and cause.status != signal.SIGPIPE
        self._ranks.end(signal.Signals(cause.status) if stopped else signal.SIGTERM)
        self._late_at = None
        self._rendezvous.fail(f"the job is ending: {describe(cause, self._job, self.late)}")
