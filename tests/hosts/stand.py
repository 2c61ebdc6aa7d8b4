"""Hosts for tests: `with Hosts(2) as (a, b): a.run("ping", "-c1", b.name)`.

They are called nodeA, nodeB, ..., know each other by these names, and hang on one switch. They are
held by processes (keeper.py), not by names, so runs do not meet and leave nothing behind.

Floor: tests.
"""

from __future__ import annotations

import os
import shlex
import shutil
import string
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hosts import FORBIDDEN, NoHosts, StandError
from hosts.processes import network_of

TESTS = Path(__file__).resolve().parents[1]
START_S = 30.0
COMMAND_S = 120.0
INTERFACE = "eth0"


def tool(module: str, *arguments: str) -> list[str]:
    """The command that runs main() of a module of this package; without site packages, as it then
    starts in a third of the time."""
    run = f"import sys; sys.path.insert(0, {str(TESTS)!r}); from hosts.{module} import main"
    return [sys.executable, "-ES", "-c", f"{run}; main(*sys.argv[1:])", *arguments]


@dataclass(frozen=True)
class Traffic:
    """What has gone through a host's cable, headers of packets included."""

    received_bytes: int
    sent_bytes: int


def reason(ended: subprocess.Popen[str]) -> StandError | None:
    """Closes the standard input of a tool, which ends it; why it failed, if it did."""
    _, errors = ended.communicate(timeout=START_S)
    if ended.returncode == 0:
        return None
    return (NoHosts if ended.returncode == FORBIDDEN else StandError)(errors.strip())


class Keeper:
    """The process that keeps namespaces, from outside."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            tool("keeper", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the tests: they still need their hosts then
        )
        assert self._process.stdout is not None
        holder = self._process.stdout.readline()
        if not holder:
            raise reason(self._process) or StandError(f"{arguments}: no holder")
        self.holder = int(holder)
        self.network = network_of(self.holder)

    @property
    def prefix(self) -> list[str]:
        """What to put in front of a command so that it runs in these namespaces."""
        return tool("enter", str(self.holder))

    def ip(self, *lines: str) -> None:
        """Commands of ip(8), the first that fails ends them."""
        done = subprocess.run(
            [*self.prefix, "ip", "-batch", "-"],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=START_S,
        )
        if done.returncode != 0:
            raise StandError(f"ip {lines}: {done.stderr.strip()}")

    def end(self) -> None:
        """With all that runs there, at once, as when the power fails."""
        if error := reason(self._process):
            raise error


class Host:
    def __init__(self, number: int, switch: Keeper, folder: Path, ipv4: bool) -> None:
        self.number = number
        self._ipv4 = ipv4
        self.name = "node" + string.ascii_uppercase[number]
        self.address, self.address6 = f"10.77.0.{number + 1}", f"fd77::{number + 1:x}"
        self._switch, self._folder = switch, folder
        self._port = f"port{number}"
        self._hardware = f"02:00:00:00:00:{number + 1:02x}"  # others remember it over a boot()
        self.boot()

    def boot(self) -> None:
        """Also after kill(): then it is the same host, started again."""
        self.keeper = Keeper("host", self.name, str(self._folder), str(self._switch.holder))
        self._switch.ip(
            f"link add {self._port} type veth peer name {INTERFACE} address {self._hardware} "
            f"netns {self.keeper.holder}",
            f"link set {self._port} master switch up",
        )
        self.keeper.ip(
            *([f"addr add {self.address}/24 dev {INTERFACE}"] if self._ipv4 else []),
            f"addr add {self.address6}/64 dev {INTERFACE} nodad",
            f"link set {INTERFACE} up",
        )
        for name in (self.name, f"{self.name}-6"):
            (self._folder / name).write_text(str(self.keeper.holder))  # for ssh.py

    def kill(self) -> None:
        """Ends all its processes and takes it off the network, until boot()."""
        self.keeper.end()

    def cut(self) -> None:
        """Pulls the cable: packets are lost, nobody is told."""
        self._switch.ip(f"link set {self._port} nomaster")

    def heal(self) -> None:
        self._switch.ip(f"link set {self._port} master switch")

    def traffic(self) -> Traffic:
        for line in Path(f"/proc/{self.keeper.holder}/net/dev").read_text().splitlines():
            name, _, counters = line.partition(":")
            if name.strip() == INTERFACE:
                numbers = [int(number) for number in counters.split()]
                return Traffic(received_bytes=numbers[0], sent_bytes=numbers[8])
        raise StandError(f"{self.name} has no {INTERFACE}")

    def start(
        self, *command: str, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """`env` is added to this process's own. The process is the command's."""
        options = {"stdin": subprocess.DEVNULL, "text": True} | options
        environment = {
            **os.environ,
            "HYDRA_LAUNCHER_EXEC": str(self._folder / "ssh"),
            **(env or {}),
        }
        return subprocess.Popen([*self.keeper.prefix, *command], env=environment, **options)

    def run(
        self,
        *command: str,
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
        timeout_s: float = COMMAND_S,
    ) -> subprocess.CompletedProcess[str]:
        """Whatever its status; what it said in `stdout`, errors too."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = self.start(*command, env=env, cwd=folder, **pipes)
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as late:
            process.kill()
            said, _ = process.communicate(timeout=START_S)
            raise StandError(f"{command} took {timeout_s:.0f} s; it said:\n{said}") from late
        return subprocess.CompletedProcess(command, process.returncode, said)


@contextmanager
def delay_line(
    a: Host, b: Host, *, delay_ms: float, loss: float = 0.0, rate_mbit: float = 0.0
) -> Iterator[None]:
    """All between these two hosts goes over such a line: see delay_line.py."""
    ends = [f"{host.keeper.holder}/{host.address}/{host.address6}" for host in (a, b)]
    line = subprocess.Popen(
        tool("delay_line", *ends, str(delay_ms), str(loss), str(rate_mbit)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert line.stdout is not None
        if line.stdout.readline() != "up\n":
            raise reason(line) or StandError("the delay line did not say that it is up")
        yield
    finally:
        ended = reason(line)
    if ended:
        raise ended


class Hosts:
    def __init__(self, count: int, ipv4: bool = True) -> None:
        """Without ipv4 they have addresses of IPv6 alone, also by their names."""
        self._count, self._ipv4 = count, ipv4
        self._open = ExitStack()

    def __enter__(self) -> list[Host]:
        """NoHosts where this user may make no namespaces, or ip(8) is missing."""
        if shutil.which("ip") is None:
            raise NoHosts("there is no ip(8): install iproute2 (.ci/system-packages does)")
        with ExitStack() as opening:
            folder = Path(opening.enter_context(tempfile.TemporaryDirectory(prefix="hosts-")))
            switch = Keeper("switch")
            opening.callback(switch.end)
            switch.ip("link add switch type bridge", "link set switch up")
            write_names(folder, self._count, self._ipv4)
            write_ssh(folder)
            hosts = []
            for number in range(self._count):
                hosts.append(Host(number, switch, folder, self._ipv4))
                opening.callback(hosts[-1].kill)
            self._open = opening.pop_all()
        return hosts

    def __exit__(self, *_: object) -> None:
        self._open.close()


def write_names(folder: Path, count: int, ipv4: bool) -> None:
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    for number, letter in enumerate(string.ascii_uppercase[:count], start=1):
        lines.append(f"fd77::{number:x} node{letter}-6")
        lines.append(f"10.77.0.{number} node{letter}" if ipv4 else f"fd77::{number:x} node{letter}")
    (folder / "hosts").write_text("\n".join(lines) + "\n")


def write_ssh(folder: Path) -> None:
    """mpiexec hands on HYDRA_LAUNCHER_EXEC and no variable of ours: the folder is in the script."""
    script = folder / "ssh"
    command = shlex.join(tool("ssh", str(folder)))
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    script.chmod(0o755)


MakeHosts = Callable[..., list[Host]]  # the fixture: make_hosts(2), make_hosts(2, ipv4=False)
