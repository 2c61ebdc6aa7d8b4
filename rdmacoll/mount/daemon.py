"""The process that serves the mount: until it is told to end, the folder is unmounted, or the job
has ended. in_job.py has what is different where rdmarun has started it.

Floor: rdmacoll/mount. Thread: the main one.
"""

from __future__ import annotations

import argparse
import importlib
import os
import secrets
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING

from ..base.mount_folder import check_folder
from ..files.board import FileBoard
from ..ps.base.ending import StoreLife
from ..ps.worker import Worker, worker
from ..servers.options import store_of_ranks
from .in_job import Turn, agent_of_mount, meet
from .names import Names
from .unmounter import Unmounter

if TYPE_CHECKING:
    from .. import _fuse

READ_AHEAD_KIB = 1024  # as much as one request may have
LOOK_S = 0.2  # between looks whether the job, or the mount, has ended


def mount(arguments: argparse.Namespace) -> int:
    """The exit status."""
    folder = os.path.abspath(arguments.folder)
    try:
        module = _module()
        agent = agent_of_mount()
        if agent is None:
            check_folder(folder)
            store = arguments.store or store_of_ranks(os.environ)
            this = worker(arguments.timeout, None, (store, arguments.rdzv_id))
        else:
            this = meet(agent, arguments.timeout)
        names, told = Names(this, FileBoard(this)), _told_to_end()
        turn = None if agent is None else Turn(agent, folder, names)
        if turn is not None and not turn.wait(told):
            return 0
        mounted = module.Mount(this.client.file_tables(arguments.timeout), names)
        name = f"rdmacoll-{os.getpid()}-{secrets.token_hex(4)}"
        unmounter = Unmounter(folder, name)
        mounted.start(folder, name)
        _read_ahead(folder)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        print(f"rdmacoll mount: {error}", file=sys.stderr)
        return 1
    if turn is None:
        print(f"rdmacoll mount: {folder} has the files of the job at {this.board.address}")
        sys.stdout.flush()
    try:
        if turn is not None:
            turn.say_there()
        why = _wait(mounted, this, told)
    finally:
        mounted.stop()
        unmounter.close()
    if why:
        print(f"rdmacoll mount: {folder} was unmounted: {why}", file=sys.stderr)
    return 0


def _module() -> ModuleType:
    try:
        return importlib.import_module("rdmacoll._fuse")
    except ImportError as error:
        raise ImportError(
            f"this rdmacoll was built without it ({error}): install libfuse3-dev (Debian, Ubuntu) "
            "or fuse3-devel (Red Hat, SUSE), and install rdmacoll again"
        ) from None


def _read_ahead(folder: str) -> None:
    """Of what is read through the page cache, in KiB. The kernel's own is 128, with which a file
    takes about twice as long to map first. Only root may say another one."""
    device = os.stat(folder).st_dev
    path = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    with suppress(OSError):
        path.write_text(str(READ_AHEAD_KIB))


def _told_to_end() -> threading.Event:
    told = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        told.set()

    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, end)
    return told


def _wait(mounted: _fuse.Mount, this: Worker, told: threading.Event) -> str:
    """Why it has ended; empty: it was told to."""
    life = StoreLife()
    while not told.wait(LOOK_S):
        if mounted.has_ended():
            return "somebody else has done it"
        try:
            this.board.count_servers()
            life.answered()
        except RuntimeError:
            life.failed()
        if life.looks_gone():
            return "the job's Store is gone: the job has ended, or the host of its rank 0"
    return ""
