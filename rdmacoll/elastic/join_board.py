"""What the ranks of an elastic job tell each other through its Store, which outlives all of them.

A rank that has been started again requests to join. The lowest rank of the group sees the request
at a commit and calls; who answers is alive, and is assigned a rank of the group's next generation
at a later commit. Whether that generation is the group from then on is decided once, here: the
first who says so is right.

All words are signed (_words.py). The two counters are not: somebody who changes them can keep
joiners out, or end the job with an error.
"""

import datetime
import time

import torch.distributed as dist

from .._agent import Agent
from .._extension import extension
from .._words import Words

PAUSE_S = 0.02  # between looks: the Store's own wait cannot be interrupted
OVER = "over"
YES, NO = "yes", "no"


class TrainingIsOver(Exception):
    """There is no group any more that could let anybody in."""


class JoinBoard:
    def __init__(self, agent: Agent, timeout: datetime.timedelta) -> None:
        job = agent.identity
        store = dist.TCPStore(job.master_addr, job.master_port, is_master=False, timeout=timeout)
        self.store = dist.PrefixStore("elastic", store)
        self._words = Words(self.store, job.start, lambda text: extension().sign(text))
        self._assigned: set[int] = set()
        self._called: set[int] = set()

    def store_of(self, generation: int) -> dist.Store:
        """Where a generation's ranks meet. The first one's is 0."""
        return dist.PrefixStore(f"generation/{generation}", self.store)

    # A joiner's side.

    def request(self) -> int:
        """The number of a new request to join."""
        return int(self.store.add("requests", 1))

    def answer_call(self, request: int, deadline: float) -> None:
        self._wait(f"called/{request}", deadline)
        self._words.say(f"here/{request}", "")

    def wait_for_rank(self, request: int, deadline: float) -> tuple[int, int, int]:
        """Generation, rank and size."""
        generation, rank, size = map(int, self._wait(f"rank/{request}", deadline).split())
        return generation, rank, size

    def wait_for_decision(self, question: str, deadline: float) -> bool:
        return self._wait(f"decided/{question}", deadline) == YES

    # The members' side.

    def who_is_here(self) -> list[int]:
        """The requests of those who have answered; calls the others. For one rank at a time."""
        here = []
        for request in range(1, int(self.store.add("requests", 0)) + 1):
            if request in self._assigned:
                continue
            if self._words.hear(f"rank/{request}") is not None:
                self._assigned.add(request)
            elif self._words.hear(f"here/{request}") is not None:
                here.append(request)
            elif request not in self._called:
                self._words.say(f"called/{request}", "")
                self._called.add(request)
        return here

    def new_generation(self) -> int:
        return int(self.store.add("generations", 1))

    def assign(self, request: int, generation: int, rank: int, size: int) -> None:
        self._words.say(f"rank/{request}", f"{generation} {rank} {size}")

    def decide(self, question: str, proposal: bool) -> bool:
        """What the first who asked has proposed; the same for all."""
        proposed = YES if proposal else NO
        return self._words.say_first(f"decided/{question}", proposed) == YES

    def say_over(self) -> None:
        self._words.say(OVER, "")

    def _wait(self, key: str, deadline: float) -> str:
        while (word := self._words.hear(key)) is None:
            if self._words.hear(OVER) is not None:
                raise TrainingIsOver
            if time.monotonic() >= deadline:
                raise TimeoutError(f"nobody has set {key!r} in the job's store")
            time.sleep(PAUSE_S)
        return word
