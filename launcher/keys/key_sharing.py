"""Brings the job's key to the hosts of its agents as mpiexec starts programs there: anybody
who reaches mpiexec can join MPI.

Floor: launcher/keys, in rdmarun. Thread: the main one.
"""

import ipaddress
import os
import selectors
import shlex
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from rdmacoll.launcher.base.hosts import Host
from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.base.limits import give_users_descriptors

from rdmacoll.base.own_module import own_module

from .key import Key
from .key_holder import READY
from .remote_shell import NoRemoteShell, remote_command

END_TIMEOUT_S = 5.0
REMEDY = (
    "let ssh (or srun) start programs there, or set RDMACOLL_SECRET_FILE to a file of the same "
    "secret on all hosts (docs/SECURITY.md)"
)


class KeyNotShared(RuntimeError):
    """The key did not get to a host, which the message names."""


class KeySharing:
    """Key holders on all hosts, from start() until close()."""

    def __init__(
        self, job: Job, key: Key, environ: Mapping[str, str], agents: Sequence[int] | None = None
    ) -> None:
        """agents: those that the key is for; all, if none are named."""
        self._agents = range(len(job.hosts)) if agents is None else agents
        self._key = key
        self._job = job
        self._hosts = job.hosts
        self._holders: dict[int, subprocess.Popen[bytes]] = {}
        self._environ = environ
        self._path = [f"PYTHONPATH={environ['PYTHONPATH']}"] if environ.get("PYTHONPATH") else []
        self._commands: dict[int, list[str]] = {}

    def start(self, up_by: float) -> None:
        """Returns when the key is on all hosts. KeyNotShared if that takes longer."""
        with selectors.DefaultSelector() as selector:
            for agent in self._agents:
                self._commands[agent] = self._command(agent)
                if time.monotonic() >= up_by:  # to look up names may take long
                    raise self._late(agent)
                holder = self._start(agent)
                assert holder.stdout is not None
                os.set_blocking(holder.stdout.fileno(), False)
                selector.register(holder.stdout, selectors.EVENT_READ, (agent, bytearray()))
            while selector.get_map():
                left_s = up_by - time.monotonic()
                if left_s <= 0:
                    raise self._late(min(key.data[0] for key in selector.get_map().values()))
                for key, _ in selector.select(left_s):
                    agent, said = key.data
                    if self._hear(agent, key.fd, said):
                        selector.unregister(key.fileobj)

    def close(self) -> None:
        """Ends the holders: the agents have the key, or will not need it."""
        for holder in self._holders.values():
            assert holder.stdin is not None
            holder.stdin.close()
        deadline = time.monotonic() + END_TIMEOUT_S
        while self._holders:
            _, holder = self._holders.popitem()
            try:
                holder.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                holder.kill()
                holder.wait()

    def kill(self) -> None:
        """Ends a start() of another thread: that fails then."""
        for holder in list(self._holders.values()):
            holder.kill()

    def _command(self, agent: int) -> list[str]:
        host = self._hosts[agent]
        command = [*own_module("rdmacoll.launcher.keys.key_holder"), self._key.run_id, str(agent)]
        if is_here(host):
            return command
        try:
            return remote_command(self._environ, host.name, ["env", *self._path, *command])
        except NoRemoteShell as error:
            raise KeyNotShared(str(error)) from None

    def _start(self, agent: int) -> "subprocess.Popen[bytes]":
        try:
            holder = subprocess.Popen(
                self._commands[agent],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # the terminal's Ctrl-C is for rdmarun alone
                preexec_fn=give_users_descriptors,
            )
        except OSError as error:
            raise self._failed(agent, str(error)) from error
        self._holders[agent] = holder
        assert holder.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, which its output shows
            os.write(holder.stdin.fileno(), self._key.secret.hex().encode() + b"\n")
        return holder

    def _hear(self, agent: int, fd: int, said: bytearray) -> bool:
        """Whether the holder has the key. What a login shell writes before is passed over."""
        data = os.read(fd, 4096)
        said += data
        if READY in said:
            return True
        if not data:
            raise self._failed(agent, self._ending(agent))
        del said[: -len(READY)]
        return False

    def _ending(self, agent: int) -> str:
        try:
            return f"status {self._holders[agent].wait(END_TIMEOUT_S)}"
        except subprocess.TimeoutExpired:
            return "it has closed its output, and runs on"

    def _late(self, agent: int) -> KeyNotShared:
        return self._failed(agent, f"not within {self._job.start_timeout_s:g} s (--start-timeout)")

    def _failed(self, agent: int, why: str) -> KeyNotShared:
        command = shlex.join(self._commands[agent][:-1])
        return KeyNotShared(
            f"host {self._hosts[agent].name}: the job's key cannot be brought there: "
            f"`{command} ...`: {why}; {REMEDY}"
        )


def is_here(host: Host) -> bool:
    """Whether the host is this machine, by whatever name: mpiexec needs no ssh for it either."""
    if host.is_local:
        return True
    try:
        found = socket.getaddrinfo(host.name, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return any(_is_own(family, str(address[0])) for family, _, _, _, address in found)


def _is_own(family: int, address: str) -> bool:
    """Whether what is sent to the address also comes from there.

    To bind to it would not tell: with ip_nonlocal_bind that succeeds for every address.
    """
    if ipaddress.ip_address(address).is_loopback:  # which may come from another one of these
        return True
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))  # sends nothing
            return str(probe.getsockname()[0]) == address
    except OSError:
        return False
