"""Boots one guest or two, hands on what the command prints, and returns its status.

Whatever ends this process, a signal included, ends the guests: they are killed on the way out, and
by the kernel if there is no way out.
"""

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from guest import BUILD, GuestError, initrd, kernel, qemu, ssh_key, tsc

SHARE = BUILD / "share"
BOOT_LIMIT_S = 180  # takes a few seconds; ten times as long on a busy machine
POLL_S = 0.02
TAIL_LINES = 30


@dataclass(frozen=True)
class Settings:
    guests: int = 1
    devices: int = 1
    cpus: int = 2
    memory_mib: int = 3072
    timeout_s: float = 600


class Timeout(GuestError):
    """The command did not end in time."""


class Guest:
    """A running QEMU and the folder in which `up` leaves its words."""

    def __init__(self, machine: qemu.Machine) -> None:
        self.name = f"host{machine.host}"
        self._folder = machine.share / machine.run / str(machine.host)
        self._folder.mkdir()
        with open(self._folder / "qemu", "w") as complaints:
            self._process = subprocess.Popen(
                # The kernel ends QEMU when this process is no more.
                ["setpriv", "--pdeathsig", "KILL", *qemu.command_line(machine)],
                stdin=None if machine.interactive else subprocess.DEVNULL,
                stdout=None if machine.interactive else complaints,
                stderr=complaints,
                pass_fds=() if machine.wire is None else (machine.wire,),
            )

    def runs(self) -> bool:
        return self._process.poll() is None

    def is_ready(self) -> bool:
        return (self._folder / "ready").exists()

    def output(self) -> Path:
        return self._folder / "output"

    def status(self) -> int | None:
        """Of the command, once it has ended."""
        path = self._folder / "status"
        return int(path.read_text()) if path.exists() else None

    def last_words(self) -> str:
        """What QEMU and the guest's console said last, to go below an error."""
        words = ""
        for name in ("qemu", "console"):
            path = self._folder / name
            lines = path.read_text(errors="replace").splitlines() if path.exists() else []
            if lines:
                words += f"\n--- the last lines of {self.name}'s {name}:\n"
                words += "\n".join(lines[-TAIL_LINES:])
        return words

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def run(settings: Settings, command: str | None) -> int:
    """Runs a line of shell in the first guest; None: a shell on the terminal."""
    if shutil.which(qemu.PROGRAM) is None:
        raise GuestError(f"no {qemu.PROGRAM} here: run .ci/system-packages-rdma")
    kernel.ensure()
    SHARE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=SHARE) as folder, _terminal_kept():
        run_folder = Path(folder)
        (run_folder / "initrd").write_bytes(initrd.build())
        (run_folder / "settings").write_text(_shell_settings(settings, command is None))
        if command is not None:
            (run_folder / "command").write_text(command + "\n")
        if settings.guests == 2:
            ssh_key.make(run_folder / "key")
        with _booted(settings, run_folder, command is None) as guests:
            return _follow(guests, None if command is None else settings.timeout_s)


def _shell_settings(settings: Settings, interactive: bool) -> str:
    """For `up`, in the shell's language. Some of our environment is handed on."""
    handed_on = {
        name: value
        for name, value in os.environ.items()
        if name in ("CI", "TERM") or name.startswith("RDMACOLL_")
    }
    size = shutil.get_terminal_size()
    lines = [
        f"guests={settings.guests} devices={settings.devices}",
        f"interactive={int(interactive)} rows={size.lines} columns={size.columns}",
        *(f"export {name}={shlex.quote(value)}" for name, value in handed_on.items()),
    ]
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def _booted(settings: Settings, run_folder: Path, interactive: bool) -> Iterator[list[Guest]]:
    guests: list[Guest] = []
    wires = socket.socketpair() if settings.guests == 2 else ()
    tsc_khz = tsc.rate_khz()
    try:
        for host in range(1, settings.guests + 1):
            machine = qemu.Machine(
                host=host,
                cpus=settings.cpus,
                memory_mib=settings.memory_mib,
                tsc_khz=tsc_khz,
                share=SHARE,
                run=run_folder.name,
                wire=wires[host - 1].fileno() if wires else None,
                interactive=interactive and host == 1,
            )
            guests.append(Guest(machine))
        for wire in wires:
            wire.close()
        yield guests
    finally:
        for guest in guests:
            guest.stop()


def _follow(guests: list[Guest], timeout_s: float | None) -> int:
    """Until the command in the first guest ends. timeout_s counts from when it starts."""
    first = guests[0]
    deadline = time.monotonic() + BOOT_LIMIT_S
    started = False
    printed = 0
    while True:
        status = first.status()
        printed = _print_from(first.output(), printed)
        if status is not None:
            return status
        for guest in guests:
            if not guest.runs():
                raise GuestError(f"{guest.name} ended by itself.{guest.last_words()}")
        if not started and first.is_ready():
            started = True
            deadline = time.monotonic() + (timeout_s or float("inf"))
        if time.monotonic() > deadline:
            raise _lateness(guests, timeout_s)
        time.sleep(POLL_S)


def _lateness(guests: list[Guest], timeout_s: float | None) -> GuestError:
    late = [guest for guest in guests if not guest.is_ready()]
    if not late:
        return Timeout(f"the command did not end within {timeout_s} s.{guests[0].last_words()}")
    names = ", ".join(guest.name for guest in late)
    words = "".join(guest.last_words() for guest in late)
    return GuestError(f"{names} did not boot within {BOOT_LIMIT_S} s.{words}")


def _print_from(path: Path, position: int) -> int:
    """Prints what was added to the file since, and returns the new position."""
    if not path.exists():
        return position
    with open(path, "rb") as file:
        file.seek(position)
        added = file.read()
    sys.stdout.buffer.write(added)
    sys.stdout.flush()
    return position + len(added)


@contextlib.contextmanager
def _terminal_kept() -> Iterator[None]:
    """QEMU sets the terminal up for its console, and may end without setting it back."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
