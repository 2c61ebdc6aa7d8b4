"""The mount of a job of rdmarun (--mount), for which the agent of each host starts a process.

Two agents may be on one machine and be given one folder. Then one process shows the files there,
and the other one waits to take its place.
Floor: rdmacoll/mount. Thread: the main one.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import sys
import threading
import time

from .._agent import Agent, own_agent
from ..base.agent_protocol import MOUNT, tell_there
from ..base.mount_folder import check_folder, is_mount_of_ours
from ..files.folders import ROOT
from ..ps.worker import Worker, worker
from ..servers.options import Address
from .names import Names

START_TIMEOUT_S = 300.0  # for the servers
LOOK_S = 0.2  # between looks at a folder that another process has
MOST_DEAD = 25  # looks at a mount whose process is gone: a helper of that one unmounts it


def agent_of_mount() -> Agent | None:
    """None: this process was started by hand."""
    agent = own_agent()
    return agent if agent is not None and agent.identity.helper == MOUNT else None


def meet(agent: Agent, timeout: float) -> Worker:
    """The servers may not be there yet. Errors as of worker()."""
    own = agent.identity
    job = Address(own.master_addr, own.master_port), own.start
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            return worker(timeout, None, job)
        except TimeoutError:
            if time.monotonic() >= deadline:
                raise


class Turn:
    """This process's turn to show the files in a folder. It lasts as long as the process."""

    def __init__(self, agent: Agent, folder: str, names: Names) -> None:
        self._agent = agent
        self._folder = folder
        self._names = names
        self._claim: socket.socket | None = None
        self._is_there = False

    def wait(self, told: threading.Event) -> bool:
        """While another process of the job shows them, which ranks are told. False: this one was
        told to end. Raises ValueError where something else is there."""
        dead = 0
        while True:
            self._claim = self._claim or _claim(self._folder)
            if self._claim is not None and not is_mount_of_ours(self._folder):
                self._say_what_is_hidden()
                return True
            if os.path.ismount(self._folder):
                dead = 0
                if not self._is_there:
                    self._check_files()
                    self.say_there()
            elif self._claim is not None:
                dead += 1
                if dead == MOST_DEAD:
                    check_folder(self._folder)
            if told.wait(LOOK_S):
                return False

    def say_there(self) -> None:
        """To the agent: ranks may start."""
        if not self._is_there:
            tell_there(self._agent.address)
        self._is_there = True

    def _check_files(self) -> None:
        """They are the job's where a new folder of the job is seen there."""
        name = f".rdmacoll.{secrets.token_hex(8)}"
        self._names.make_folder((ROOT, name.encode()), 0o700)
        try:
            if not os.path.isdir(os.path.join(self._folder, name)):
                raise ValueError(f"{self._folder} is a mount of another job: give another folder")
        finally:
            self._names.remove_folder((ROOT, name.encode()))

    def _say_what_is_hidden(self) -> None:
        names = sorted(os.listdir(self._folder))
        if names:
            print(
                f"rdmacoll mount: while {self._folder} was not mounted, {', '.join(names[:5])}"
                f"{' and more' if len(names) > 5 else ''} came there: not into the job's files, "
                "and hidden until the job ends",
                file=sys.stderr,
            )


def _claim(folder: str) -> socket.socket | None:
    """A name that one process of this machine has for a folder; None: another one has it."""
    place = f"{os.stat('/proc/self/ns/mnt').st_ino} {os.path.realpath(folder)}"
    name = hashlib.sha256(os.fsencode(place)).hexdigest()[:32]
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claim.bind(f"\0rdmacoll-mount-{name}")
    except OSError:
        claim.close()
        return None
    return claim
