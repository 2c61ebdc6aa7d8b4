"""A process with a verbs transport (programs/transport_shell.cc), driven from here.

Floor: tests.
"""

import os
import select
import signal
import struct
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

LIMIT_S = 60  # for any answer; a hang fails by it


class Refused(Exception):
    """The transport answered with a status other than Ok."""

    def __init__(self, line: str) -> None:
        super().__init__(line)
        self.code, _, self.message = line.partition(" ")


class Line(NamedTuple):
    counter: int
    signature: int
    size: int
    inline_data: bytes
    credit: int


class TransportShell:
    """`settings` are environment variables; `prefix` is a command that runs the program."""

    def __init__(
        self, program: Path, device: str, settings: dict[str, str], prefix: tuple[str, ...] = ()
    ) -> None:
        self.device = device
        self._process = subprocess.Popen(
            [*prefix, str(program)],
            env={**os.environ, "RDMACOLL_HCA": f"={device}", **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.pid = self._process.pid
        self._said = b""
        try:
            self.address = bytes.fromhex(self.answer())
        except Refused:
            self.kill()
            raise

    # --- one line at a time ---------------------------------------------------------------------

    def ask(self, command: str, *arguments: object) -> None:
        """Answered by answer()."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, (command, *arguments))).encode() + b"\n")
        self._process.stdin.flush()

    def answered(self, within_s: float) -> bool:
        assert self._process.stdout is not None
        if b"\n" in self._said:
            return True
        ready, _, _ = select.select([self._process.stdout], [], [], within_s)
        if ready:
            said = os.read(self._process.stdout.fileno(), 1 << 20)
            assert said, f"the process ended: {self._process.wait(LIMIT_S)}"
            self._said += said
        return b"\n" in self._said

    def answer(self) -> str:
        end = time.monotonic() + LIMIT_S
        while not self.answered(within_s=max(0.0, end - time.monotonic())):
            assert time.monotonic() < end, f"no answer in {LIMIT_S} s"
        line, _, self._said = self._said.partition(b"\n")
        code, _, rest = line.decode().partition(" ")
        if code != "ok":
            raise Refused(line.decode())
        return rest

    def do(self, command: str, *arguments: object) -> str:
        self.ask(command, *arguments)
        return self.answer()

    # --- what it can do -------------------------------------------------------------------------

    def make(self, region: int, size: int, *, for_reading: bool = False) -> bytes:
        """Its key. for_reading: others get from it, and no more."""
        return bytes.fromhex(self.do("make", region, size, int(for_reading)))

    def show(self, region: int, offset: int, size: int) -> bytes:
        return bytes.fromhex(self.do("show", region, offset, size))

    def store(self, region: int, offset: int, data: bytes) -> None:
        self.do("store", region, offset, data.hex())

    def line(self, region: int, offset: int) -> Line:
        raw = self.show(region, offset, 64)
        return Line(*struct.unpack("<QII44sI", raw))

    # --- its end --------------------------------------------------------------------------------

    def stop(self) -> None:
        """Until resume(), it does nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(LIMIT_S)

    def leave(self) -> None:
        """Shuts the transport down."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(LIMIT_S) == 0


def connect(one: TransportShell, other: TransportShell, limit_ms: int = 20_000) -> None:
    one.ask("connect", other.address.hex(), limit_ms)
    other.ask("connect", one.address.hex(), limit_ms)
    one.answer()
    other.answer()


class Pair:
    """Two processes that have met and opened each other's region; each calls the other 0."""

    REGION = 7
    REGION_BYTES = 1 << 20

    def __init__(self, one: TransportShell, other: TransportShell) -> None:
        self.one, self.other = one, other
        connect(one, other)
        for here, there in ((one, other), (other, one)):
            key = here.make(self.REGION, self.REGION_BYTES)
            here.do("offer", 0, self.REGION)
            there.do("open", 0, key.hex())
