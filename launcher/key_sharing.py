"""Brings the job's key to the hosts of its agents, by ssh: another way than MPI's.

Floor: launcher, in rdmarun. Thread: the main one.
"""

import os
import selectors
import shlex
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .hosts import Host
from .key import Key
from .key_holder import READY
from .processes import own_module

END_TIMEOUT_S = 5.0
# How mpiexec is told what to start programs on other hosts with, the first that is set.
SHELLS = (
    "HYDRA_LAUNCHER_EXEC",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC",
    "OMPI_MCA_plm_rsh_agent",
    "PRTE_MCA_plm_ssh_agent",
)
REMEDY = (
    "let ssh start programs there, or set RDMACOLL_SECRET_FILE to a file of the same secret on all "
    "hosts (docs/SECURITY.md)"
)


class KeyNotShared(RuntimeError):
    """The key did not get to a host, which the message names."""


def remote_shell(environ: Mapping[str, str]) -> list[str]:
    """As `ssh HOST COMMAND` is used; the first of several that a variable may list."""
    said = next((environ[name] for name in SHELLS if environ.get(name)), "ssh")
    program = shlex.split(said.partition(":")[0])
    return [*program, "-x"] if Path(program[0]).name == "ssh" else program


class KeySharing:
    """Key holders on all hosts, from start() until close()."""

    def __init__(self, hosts: Sequence[Host], key: Key, environ: Mapping[str, str]) -> None:
        self._key = key
        self._hosts = hosts
        self._holders: list[subprocess.Popen[bytes]] = []
        shell = remote_shell(environ)
        path = [f"PYTHONPATH={environ['PYTHONPATH']}"] if environ.get("PYTHONPATH") else []
        self._commands = []
        for agent, host in enumerate(hosts):
            command = [*own_module("key_holder"), key.run_id, str(agent)]
            remote = [*shell, host.name, shlex.join(["env", *path, *command])]
            self._commands.append(command if is_here(host) else remote)

    def start(self, timeout_s: float) -> None:
        """Returns when the key is on all hosts."""
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            for agent in range(len(self._hosts)):
                holder = self._start(agent)
                assert holder.stdout is not None
                os.set_blocking(holder.stdout.fileno(), False)
                selector.register(holder.stdout, selectors.EVENT_READ, (agent, bytearray()))
            while selector.get_map():
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    agents = [key.data[0] for key in selector.get_map().values()]
                    raise self._failed(min(agents), f"not within {timeout_s:g} s (--start-timeout)")
                for key, _ in ready:
                    agent, said = key.data
                    if self._hear(agent, key.fd, said):
                        selector.unregister(key.fileobj)

    def close(self) -> None:
        """The agents have it, or will not need it: ends the holders."""
        for holder in self._holders:
            assert holder.stdin is not None
            holder.stdin.close()
        deadline = time.monotonic() + END_TIMEOUT_S
        while self._holders:
            holder = self._holders.pop()
            try:
                holder.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                holder.kill()
                holder.wait()

    def _start(self, agent: int) -> "subprocess.Popen[bytes]":
        try:
            holder = subprocess.Popen(
                self._commands[agent],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # the terminal's Ctrl-C is for rdmarun alone
            )
        except OSError as error:
            raise self._failed(agent, str(error)) from error
        self._holders.append(holder)
        assert holder.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, which its output shows
            os.write(holder.stdin.fileno(), self._key.secret.hex().encode() + b"\n")
        return holder

    def _hear(self, agent: int, fd: int, said: bytearray) -> bool:
        """Whether it is ready. What else a login shell says is left out."""
        data = os.read(fd, 4096)
        said += data
        if READY in said:
            return True
        if not data:
            raise self._failed(agent, f"status {self._holders[agent].wait()}")
        del said[: -len(READY)]
        return False

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
    return any(_is_own(family, address) for family, _, _, _, address in found)


def _is_own(family: int, address: tuple[object, ...]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address[0], 0))
            return True
    except OSError:
        return False
