"""Futures of works: a thread of Python ends them, as those of the engine call no Python."""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

Value = TypeVar("Value")

LOOK_AGAIN_S = 1e-3


@dataclass(frozen=True)
class _Watched:
    is_done: Callable[[], bool]
    wait: Callable[[float], object]  # as the argument of the same name
    value: Callable[[], Any]
    future: torch.futures.Future[Any]

    def end(self) -> None:
        try:
            self.future.set_result(self.value())
        except Exception as error:
            self.future.set_exception(error)


def future_of(
    is_done: Callable[[], bool], wait: Callable[[float], object], value: Callable[[], Value]
) -> torch.futures.Future[Value]:
    """The future of a work. It ends within a millisecond or two of the work.

    wait: takes seconds; raises if the work has not ended by then. value: of a work that has ended;
    raises what it ended with.
    """
    future: torch.futures.Future[Value] = torch.futures.Future()
    _works().put(_Watched(is_done, wait, value, future))
    return future


@functools.cache
def _works() -> queue.SimpleQueue[_Watched]:
    works: queue.SimpleQueue[_Watched] = queue.SimpleQueue()
    threading.Thread(target=_watch, args=(works,), name="rdmacoll futures", daemon=True).start()
    return works


def _watch(works: queue.SimpleQueue[_Watched]) -> None:
    pending: list[_Watched] = []
    while True:
        while not pending or not works.empty():
            pending.append(works.get())
        with suppress(Exception):  # end() tells
            pending[0].wait(LOOK_AGAIN_S)
        left = []
        for work in pending:
            if work.is_done():
                work.end()
            else:
                left.append(work)
        pending = left
