"""What the ranks of all hosts are doing, for `rdmacoll debug dump`, which asks its host's agent.

Agent 0 has every agent ask the ranks of its host, and sends their answers to the agent that was
asked. Floor: launcher/agent. Thread: the agent's; one of its own asks the ranks.
"""

import json
import os
import selectors
import time
from collections.abc import Callable
from contextlib import suppress

from rdmacoll.launcher.base.comm import Comm
from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.limits import start_thread

from rdmacoll.debug.ask import ask_all

from .caller import Caller, packed

ASK_S = 5.0  # the longest wait for a rank
ROUND_S = 8.0  # the longest wait for the agents
ASK, COLLECT, REPORT, WHOLE = b"a", b"c", b"r", b"w"  # how what agents say begins


class Dumps:
    def __init__(
        self,
        comm: Comm,
        job: Job,
        pids: Callable[[], dict[int, int]],
        selector: selectors.BaseSelector,
    ) -> None:
        """pids: the ranks of this host that live, and their process ids."""
        self._comm = comm
        self._job = job
        self._pids = pids
        self._callers: list[Caller] = []  # to whom this agent owes an answer
        self._askers: set[int] = set()  # agents to whom agent 0 owes one
        self._reports: dict[int, str] = {}
        self._is_collecting = False
        self._report = ""
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector = selector
        selector.register(self._woken, selectors.EVENT_READ, self._on_report)
        self.deadline: float | None = None  # when poll() has something to do

    def ask(self, caller: Caller) -> None:
        self._callers.append(caller)
        if self._comm.rank == 0:
            self._begin_round(0)
        else:
            self._comm.send_mail(0, ASK)

    def poll(self) -> None:
        for agent, said in self._comm.take_mail():
            kind, text = said[:1], said[1:].decode()
            if kind == ASK:
                self._begin_round(agent)
            elif kind == COLLECT:
                self._collect()
            elif kind == REPORT:
                self._reports[agent] = text
            elif kind == WHOLE:
                self._answer(text)
        if self._askers:
            is_late = self.deadline is not None and self.deadline <= time.monotonic()
            if is_late or {0, *self._comm.others} <= self._reports.keys():
                self._end_round()

    def close(self) -> None:
        """The thread keeps its end of the pipe, if it still asks."""
        self._selector.unregister(self._woken)
        os.close(self._woken)
        if not self._is_collecting:
            os.close(self._wake)
        for caller in self._callers:
            caller.close()

    def _begin_round(self, asker: int) -> None:
        if not self._askers:
            self._reports.clear()
            self.deadline = time.monotonic() + ROUND_S
            for agent in self._comm.others:
                self._comm.send_mail(agent, COLLECT)
            self._collect()
        self._askers.add(asker)

    def _end_round(self) -> None:
        hosts = [host.name for host in self._job.hosts]
        whole = [[name, self._reports.get(agent, "")] for agent, name in enumerate(hosts)]
        for asker in self._askers:
            if asker == 0:
                self._answer(json.dumps(whole))
            else:
                self._comm.send_mail(asker, WHOLE + json.dumps(whole).encode())
        self._askers.clear()
        self.deadline = None

    def _answer(self, whole: str) -> None:
        text = packed(json.dumps([self._comm.rank, json.loads(whole)]).encode())
        for caller in self._callers:
            caller.give(text)
        self._callers.clear()

    def _collect(self) -> None:
        if not self._is_collecting:
            self._is_collecting = True
            start_thread(self._ask_ranks, self._pids())

    def _ask_ranks(self, pids: dict[int, int]) -> None:
        asked = {one.pid: one for one in ask_all(set(pids.values()), ASK_S)}
        report = []
        for rank, pid in pids.items():
            one = asked.get(pid)
            problem = "runs, but has joined no group" if one is None else one.problem
            report.append([rank, pid, "" if one is None else one.text, problem])
        self._report = json.dumps(report)
        with suppress(BrokenPipeError):  # closed meanwhile
            os.write(self._wake, b"\0")

    def _on_report(self) -> None:
        os.read(self._woken, 64)
        self._is_collecting = False
        if self._comm.rank == 0:
            self._reports[0] = self._report
        else:
            self._comm.send_mail(0, REPORT + self._report.encode())
