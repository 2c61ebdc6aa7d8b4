"""Crew: the workers that take a snapshot together, or one alone. They go from step to step at the
same time, and if one fails all of them raise.

Floor: rdmacoll/ps/base. Thread: the one that takes the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch.distributed as dist

from ...remote.memory.errors import PeerError

T = TypeVar("T")
KINDS: tuple[type[Exception], ...] = (FileExistsError, FileNotFoundError, TimeoutError, PeerError)
KINDS += (OSError, ValueError, TypeError)


class Crew:
    def __init__(self, alone: bool, group: dist.ProcessGroup | None) -> None:
        """group: None: the default group."""
        self.alone, self.group = alone, group
        self.rank = 0 if alone else dist.get_rank(group)
        self.size = 1 if alone else dist.get_world_size(group)

    def step(self, do: Callable[[], T]) -> list[T]:
        """What it returned on each worker. Raises what it raised anywhere."""
        if self.alone:
            return [do()]
        mine: Exception | None = None
        word: tuple[Any, str, str] = (None, "", "")
        try:
            word = (do(), "", "")
        except Exception as error:
            mine = error
            word = (None, _kind_of(error).__name__, str(error))
        words: list[Any] = [None] * self.size
        dist.all_gather_object(words, word, group=self.group)
        if mine is not None:
            raise mine
        for rank, (_, kind, text) in enumerate(words):
            if kind:
                raise _as(kind, f"worker {rank}: {text}")
        return [value for value, _, _ in words]

    def first(self, do: Callable[[], None]) -> None:
        """What one worker does for all."""
        self.step(do if self.rank == 0 else lambda: None)

    def share(self, all_of_it: Sequence[T]) -> Sequence[T]:
        """This worker's part."""
        return all_of_it[self.rank :: self.size]


def _kind_of(error: BaseException) -> type[Exception]:
    return next((kind for kind in KINDS if isinstance(error, kind)), RuntimeError)


def _as(kind: str, text: str) -> Exception:
    return {one.__name__: one for one in (*KINDS, RuntimeError)}[kind](text)
