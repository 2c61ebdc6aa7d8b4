"""What is compared takes turns, and a second process of it is stopped while it is not its turn."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import psutil

WARM_UP = 3
TURN_LIMIT_S = 120.0  # TensorPipe has hung at times
Ways = dict[str, Callable[[], float]]
Seconds = dict[str, list[float]]


def in_turns(rounds: int, ways: Ways) -> Seconds:
    """Who begins changes from round to round."""
    seconds: Seconds = {name: [] for name in ways}
    names = list(ways)
    for number in range(WARM_UP + rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            took = ways[name]()
            if number >= WARM_UP:
                seconds[name].append(took)
    return seconds


def timed(call: Callable[[], object]) -> Callable[[], float]:
    def timed_call() -> float:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    return timed_call


class Peer:
    """A process that answers another one, which is told what to do and says what came of it. Both
    are stopped in between: TensorPipe's threads never sleep, and there may be no more than two
    cores."""

    def __init__(
        self,
        answers: Callable[[Connection], None],
        asks: Callable[[Connection, Connection], None],
    ) -> None:
        """asks: with what leads to the other process, and what leads here. It says first that it is
        ready, and ends when it is told None."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._turns, turns = context.Pipe()
        self._processes = [
            context.Process(target=answers, args=(ours,), daemon=True),
            context.Process(target=asks, args=(theirs, turns), daemon=True),
        ]
        for process in self._processes:
            process.start()
        for theirs_alone in (ours, theirs, turns):  # so that it is seen when they end
            theirs_alone.close()
        self._heard()
        self._seen = [psutil.Process(process.pid) for process in self._processes]
        self._let_go_on(False)

    def turn(self, told: object) -> object:
        self._let_go_on(True)
        self._turns.send(told)
        said = self._heard()
        self._let_go_on(False)
        return said

    def close(self) -> None:
        self._let_go_on(True)
        self._turns.send(None)
        for process in self._processes:
            process.join(TURN_LIMIT_S)

    def _heard(self) -> object:
        if not self._turns.poll(TURN_LIMIT_S):
            for process in self._processes:
                process.kill()
            raise TimeoutError(f"it has not answered for {TURN_LIMIT_S:.0f} s, and is ended")
        return self._turns.recv()

    def _let_go_on(self, goes_on: bool) -> None:
        for process in self._seen:
            if goes_on:
                process.resume()
            else:
                process.suspend()
