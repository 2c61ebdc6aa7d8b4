"""What the ranks of an elastic job tell each other through its Store, which outlives all of them.

A rank that has been started again takes a ticket. The lowest rank of the group sees it at a commit
and calls it; who answers is alive, and gets a seat at a later commit: which rank of how many it is
in the next generation of the group. Whether that generation is the group from then on is decided
once, here: the first who says so is right.
"""

import datetime
import os
import time

import torch.distributed as dist

PAUSE_S = 0.02  # between looks: the Store's own wait cannot be interrupted
OVER = "over"
YES, NO = "yes", "no"


class TrainingIsOver(Exception):
    """There is no group any more that could let anybody in."""


class Board:
    def __init__(self, timeout: datetime.timedelta) -> None:
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = dist.TCPStore(address, port, is_master=False, timeout=timeout)
        self.store = dist.PrefixStore("elastic", store)
        self._seated: set[int] = set()
        self._called: set[int] = set()

    def store_of(self, generation: int) -> dist.Store:
        """Where a generation's ranks meet. The first one's is 0."""
        return dist.PrefixStore(f"generation/{generation}", self.store)

    # A newcomer's side.

    def take_ticket(self) -> int:
        return int(self.store.add("tickets", 1))

    def answer_call(self, ticket: int, deadline: float) -> None:
        self._wait(f"called/{ticket}", deadline)
        self.store.set(f"here/{ticket}", "")

    def wait_for_seat(self, ticket: int, deadline: float) -> tuple[int, int, int]:
        """Generation, rank and size."""
        generation, rank, size = map(int, self._wait(f"seat/{ticket}", deadline).split())
        return generation, rank, size

    def wait_for_decision(self, question: str, deadline: float) -> bool:
        return self._wait(f"decided/{question}", deadline) == YES

    # The members' side.

    def who_is_here(self) -> list[int]:
        """The tickets of those who have answered; calls the others. For one rank at a time."""
        here = []
        for ticket in range(1, int(self.store.add("tickets", 0)) + 1):
            if ticket in self._seated:
                continue
            if self.store.check([f"seat/{ticket}"]):
                self._seated.add(ticket)
            elif self.store.check([f"here/{ticket}"]):
                here.append(ticket)
            elif ticket not in self._called:
                self.store.set(f"called/{ticket}", "")
                self._called.add(ticket)
        return here

    def new_generation(self) -> int:
        return int(self.store.add("generations", 1))

    def seat(self, ticket: int, generation: int, rank: int, size: int) -> None:
        self.store.set(f"seat/{ticket}", f"{generation} {rank} {size}")

    def decide(self, question: str, proposal: bool) -> bool:
        """What the first who asked has proposed; the same for all."""
        proposed = YES if proposal else NO
        return _text(self.store.compare_set(f"decided/{question}", "", proposed)) == YES

    def say_over(self) -> None:
        self.store.set(OVER, "")

    def _wait(self, key: str, deadline: float) -> str:
        while not self.store.check([key]):
            if self.store.check([OVER]):
                raise TrainingIsOver
            if time.monotonic() >= deadline:
                raise TimeoutError(f"nobody has set {key!r} in the job's store")
            time.sleep(PAUSE_S)
        return _text(self.store.get(key))


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
