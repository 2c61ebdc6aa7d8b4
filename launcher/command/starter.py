"""A starter: the process that starts one agent, which is mpiexec, or the agent itself.

Floor: launcher/command, in rdmarun. Thread: the main one.
"""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from rdmacoll.launcher.base.job import PIECE_BYTES
from rdmacoll.launcher.base.limits import OWN_DESCRIPTORS, give_users_descriptors


@dataclass(frozen=True)
class Command:
    name: str  # for messages
    argv: Sequence[str]
    env: Mapping[str, str]
    hint: Callable[[], str] = lambda: ""  # why it may have failed, once it has; empty: no idea


class Starter:
    def __init__(self, command: Command) -> None:
        """OSError if it cannot be started."""
        self.name = command.name
        self.hint = command.hint
        self._process = subprocess.Popen(
            list(command.argv),
            env=dict(command.env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # the terminal's Ctrl-C is for rdmarun alone
            preexec_fn=partial(give_users_descriptors, OWN_DESCRIPTORS),
        )
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None and stdout is not None and stderr is not None
        self._stdin = stdin.fileno()
        self.stdout, self.stderr = stdout.fileno(), stderr.fileno()
        os.set_blocking(self._stdin, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """None while it runs; negative: the signal that killed it."""
        return self._process.poll()

    def tell(self, data: bytes) -> None:
        """At most a piece of the job, which a pipe has room for."""
        assert len(data) <= PIECE_BYTES
        with suppress(BrokenPipeError):  # it is ending, which its status tells
            os.write(self._stdin, data)

    def order(self, data: bytes) -> bool:
        """The same; False if that did not work, and something else must be done."""
        try:
            os.write(self._stdin, data)
        except (BrokenPipeError, BlockingIOError):
            return False
        return True

    def terminate(self) -> None:
        if self.status is None:
            self._process.terminate()

    def kill(self) -> None:
        if self.status is None:
            self._process.kill()
