"""Returning: starts the agent of a lost host again, and again, until it is back or the job is over.

Floor: launcher/command, in rdmarun. Thread: its own, as ssh may take long; the main one, which the
public methods are for.
"""

import os
import selectors
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing

from rdmacoll.launcher.base.limits import start_thread
from rdmacoll.launcher.keys.key_sharing import KeyNotShared, KeySharing

from .starter import Command, Starter

TRY_S = 30.0  # the longest that one attempt takes
PAUSE_S = 2.0  # between attempts
TICK_S = 0.05
END_S = 10.0


class Returning:
    def __init__(
        self,
        command: Command,
        first_words: bytes,
        share_key: Callable[[], KeySharing] | None,
        selector: selectors.BaseSelector,
        on_failure: Callable[[str], None],
    ) -> None:
        """first_words: what the agent is told. on_failure: hears why the first attempt failed."""
        self._command = command
        self._first_words = first_words
        self._share_key = share_key
        self._selector = selector
        self._on_failure = on_failure
        self._over = threading.Event()
        self._sharing: KeySharing | None = None
        self._starter: Starter | None = None
        self._why = ""
        self._failed, self._fail = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        selector.register(self._failed, selectors.EVENT_READ, self._say_why)
        self._thread = start_thread(self._run)

    def is_back(self) -> Starter:
        """Agent 0 has let it in. What has started it, for others to watch."""
        starter, self._starter = self._starter, None
        assert starter is not None
        self.end()
        return starter

    def end(self) -> None:
        """Gives up what is under way."""
        self._over.set()
        if self._starter is not None:
            self._starter.kill()
        if self._sharing is not None:
            self._sharing.kill()
        self._thread.join(END_S)
        if self._failed in self._selector.get_map():
            self._selector.unregister(self._failed)
        os.close(self._failed)
        os.close(self._fail)

    def _say_why(self) -> None:
        self._selector.unregister(self._failed)  # once is enough
        self._on_failure(self._why)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                why = self._try()
            except (KeyNotShared, OSError) as error:
                why = str(error)
            if not self._over.is_set() and not self._why:
                self._why = why
                os.write(self._fail, b"\0")
            self._over.wait(PAUSE_S)

    def _try(self) -> str:
        """Why it is not back; or it is, or need not be any more."""
        until = time.monotonic() + TRY_S
        with ExitStack() as held:
            if self._share_key is not None:
                self._sharing = held.enter_context(closing(self._share_key()))
                self._sharing.start(until)
            starter = self._starter = Starter(self._command)
            starter.tell(self._first_words)
            while not self._over.wait(TICK_S):
                if (status := starter.status) is not None:
                    return f"{starter.name} ended (status {status})"
                if time.monotonic() >= until:
                    starter.kill()
                    return f"its agent has not come within {TRY_S:g} s"
        return ""
