"""Ways to wait for an operation: by its work, in another thread, by futures, by looking.

A waiter is made once the operation has been started, and called when it is to be over.
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable
from typing import Any

WAIT_S = 60.0  # longer than the groups' timeout, by which the operation should have failed

Waiter = Callable[[], None]


def plainly(works: list[Any]) -> Waiter:
    def wait() -> None:
        for work in works:
            work.wait()

    return wait


def with_a_limit(works: list[Any]) -> Waiter:
    def wait() -> None:
        for work in works:
            work.wait(datetime.timedelta(seconds=WAIT_S))

    return wait


def backwards(works: list[Any]) -> Waiter:
    return plainly(works[::-1])


def in_a_thread(works: list[Any]) -> Waiter:
    def wait() -> None:
        failures: list[BaseException] = []

        def run() -> None:
            try:
                plainly(works)()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(WAIT_S)
        assert not thread.is_alive(), "a wait in another thread does not end"
        if failures:
            raise failures[0]

    return wait


def by_futures(works: list[Any]) -> Waiter:
    """Drops the works, and waits for their futures and for callbacks of these."""
    futures = [work.get_future() for work in works]
    works.clear()
    told = threading.Semaphore(0)
    for future in futures:
        future.add_done_callback(lambda _: told.release())

    def wait() -> None:
        for future in futures:
            future.wait()
        for _ in futures:
            assert told.acquire(timeout=WAIT_S), "a callback was not called"

    return wait


def by_looking(works: list[Any]) -> Waiter:
    """Leaves the progress to the background thread."""

    def wait() -> None:
        deadline = time.monotonic() + WAIT_S
        while not all(work.is_completed() for work in works):
            assert time.monotonic() < deadline, "is_completed() stays False"
            time.sleep(0.0005)
        plainly(works)()

    return wait


# What a Part's mode may be, beside "block".
WAITS: dict[str, Callable[[list[Any]], Waiter]] = {
    "wait": plainly,
    "limit": with_a_limit,
    "backwards": backwards,
    "thread": in_a_thread,
    "future": by_futures,
    "look": by_looking,
}
