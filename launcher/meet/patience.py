"""Waiting for MPI, which waits for ever for an agent that is lost meanwhile: the star notices that.

Floor: launcher/meet. Thread: the agent's.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from rdmacoll.launcher.base.limits import start_thread
from rdmacoll.launcher.star.hub import Hub
from rdmacoll.launcher.star.spoke import Spoke

TICK_S = 0.002  # between looks at what other agents say

T = TypeVar("T")


def while_all_live(star: Hub | Spoke, wait: Callable[[], T]) -> T:
    """What wait() returns or raises. It runs in a thread of its own, which is left behind where an
    agent is lost: AgentLost, HubLost."""
    waited: Future[T] = Future()

    def run() -> None:
        try:
            waited.set_result(wait())
        except Exception as error:
            waited.set_exception(error)

    start_thread(run)
    while not waited.done():
        star.expect_all()
        time.sleep(TICK_S)
    return waited.result()
