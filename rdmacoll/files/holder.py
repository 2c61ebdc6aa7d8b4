"""Holder: this process among those that hold tables of files. Its word in the job's Store has those
of the files that it has open, and those that it makes (ps/freeing/held.py).

Floor: rdmacoll/files. Thread: any; a thread of its own shows that the process lives.
"""

from __future__ import annotations

import atexit
import errno
import math
import os
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from ..ps.freeing.held import Held
from ..ps.worker import Worker
from .board import FileBoard

BEAT_S = 0.5
OLD_S = 5.0  # half of what a process may be silent before it is taken for dead
END_S = 1.0  # that the thread has for a word that it is saying


class Hold:
    """Of a version of a file, until it is closed, or nobody has it any more."""

    def __init__(self, holder: int, let_go: Callable[[], None]) -> None:
        """holder: the number under which it is held."""
        self.holder = holder
        self._let_go = weakref.finalize(self, let_go)
        self._let_go.atexit = False

    def close(self) -> None:
        """From any thread, and again: does nothing then."""
        self._let_go()


class Holder:
    def __init__(self, board: FileBoard) -> None:
        self._board = board
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._is_busy = False
        self._number: int | None = None
        self._said = ""
        self._said_s = -math.inf
        self._beats = 0
        self._open: Counter[int] = Counter()
        self._loose: set[int] = set()
        self._in_word = Held(0, frozenset(), frozenset())
        # What is no more needed. The next word is without it: so nobody waits for the Store, and
        # finalizers may come at any moment, also where this thread has the lock.
        self._closed: deque[tuple[int, ...]] = deque()
        self._freed: deque[set[int]] = deque()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def hold(self, tables: Iterable[int]) -> Hold:
        """From now on they are kept, if a folder names them still."""
        held = tuple(tables)
        with self._alone():
            return self._hold(held)

    def make(self, count: int = 1) -> list[int]:
        """Numbers of tables that are about to be made. They are kept until named() or forget(), and
        freed where this process ends before and no folder names them."""
        tables = self._board.next_tables(count)
        with self._alone():
            self._loose.update(tables)
            self._say()
        return tables

    def check(self, tables: Iterable[int], also: Hold | None) -> None:
        """Before a folder names them, and what is held. Raises OSError (ESTALE) where this process
        was taken for dead since it has made them, or has held that: it may be no more."""
        with self._alone():
            if self._is_old():
                self._say()
            self._check(tables, also)

    def named(self, tables: Iterable[int], also: Hold | None, keep: Iterable[int]) -> Hold:
        """A folder names them now. keep: what is held from now on. Raises as check(): then the name
        is to be taken away."""
        numbers, held = set(tables), tuple(keep)
        with self._alone():
            self._check(numbers, also)
            self._loose -= numbers
            number, is_due = self._number, bool(numbers) or also is not None
            hold = self._hold(held, is_due)
            if is_due and hold.holder != number:
                hold.close()
                raise _taken_for_dead()
        return hold

    def _hold(self, held: tuple[int, ...], is_due: bool = False) -> Hold:
        """is_due: the word is to be said in any case."""
        self._open.update(held)
        try:
            if is_due or not self._in_word.open.issuperset(held) or self._is_old():
                self._say()
        except BaseException:
            self._closed.append(held)
            raise
        assert self._number is not None
        return Hold(self._number, partial(self._closed.append, held))

    def forget(self, tables: Iterable[int]) -> None:
        """What of these it has made was thrown away."""
        made = self._loose.intersection(tables)
        if made:
            self._freed.append(made)

    def beat(self) -> None:
        """Shows that this process lives, and what it needs no more."""
        with self._alone():
            if self._in_word.open or self._in_word.loose:
                self._say()

    def end(self) -> None:
        """Before Python ends: a thread in the Store would then abort the process."""
        if os.getpid() == self._pid:
            self._ended.set()
            if self._thread is not None:
                self._thread.join(END_S)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._board.check_process()
        with self._lock:
            if self._is_busy:  # a finalizer or a handler of a signal, amid this thread's own word
                raise OSError(errno.EDEADLK, os.strerror(errno.EDEADLK))
            self._is_busy = True
            try:
                yield
            finally:
                self._is_busy = False

    def _is_old(self) -> bool:
        return time.monotonic() - self._said_s > OLD_S

    def _check(self, tables: Iterable[int], also: Hold | None) -> None:
        if also is not None and also.holder != self._number:
            raise _taken_for_dead()
        if not self._loose.issuperset(tables):
            raise _taken_for_dead()

    def _say(self) -> None:
        """Who was taken for dead goes on as another holder, without what it was making."""
        self._take_away()
        word = self._next_word()
        if self._number is None or not self._board.change_holder(self._number, self._said, word):
            if self._number is not None:
                self._loose -= self._in_word.loose
                word = self._next_word()
            self._number = self._board.new_holder(word)
        self._said, self._said_s = word, time.monotonic()
        self._in_word = Held.from_word(word)
        is_beating = self._thread is not None and self._thread.is_alive()
        if not is_beating and not self._ended.is_set():
            self._thread = threading.Thread(target=self._beats_on, daemon=True)
            self._thread.start()

    def _take_away(self) -> None:
        while self._closed:
            self._open.subtract(self._closed.popleft())
        while self._freed:
            self._loose.difference_update(self._freed.popleft())
        self._open = +self._open

    def _next_word(self) -> str:
        self._beats += 1
        return Held(self._beats, frozenset(self._open), frozenset(self._loose)).to_word()

    def _beats_on(self) -> None:
        while not self._ended.wait(BEAT_S):
            try:
                self.beat()
            except Exception:  # the Store is gone, and the job with it
                return


def _taken_for_dead() -> OSError:
    return OSError(
        errno.ESTALE, "this process has stood still for so long that its file may be freed"
    )


_lock = threading.Lock()
_own: Holder | None = None


def own_holder(worker: Worker) -> Holder:
    """That of this process. Raises RuntimeError in a forked child."""
    worker.check_process()
    global _own
    with _lock:
        if _own is None:
            _own = Holder(FileBoard(worker))
            atexit.register(_own.end)
        return _own
