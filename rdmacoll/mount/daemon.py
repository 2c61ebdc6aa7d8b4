"""The process that serves the mount: until it is told to end, the folder is unmounted, or the job
has ended.

Floor: rdmacoll/mount. Thread: the main one.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import threading
from types import FrameType, ModuleType
from typing import TYPE_CHECKING

from ..files.board import FileBoard
from ..ps.base.ending import StoreLife
from ..ps.worker import Worker, worker
from .names import Names

if TYPE_CHECKING:
    from .. import _fuse

LOOK_S = 0.2  # between looks whether the job, or the mount, has ended


def mount(arguments: argparse.Namespace) -> int:
    """The exit status."""
    try:
        module = _module()
        _check_folder(arguments.folder)
        guest_of = None if arguments.store is None else (arguments.store, arguments.rdzv_id)
        this = worker(arguments.timeout, None, guest_of)
        mounted = module.Mount(
            this.client.file_tables(arguments.timeout), Names(this, FileBoard(this))
        )
        mounted.start(os.path.abspath(arguments.folder))
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        print(f"rdmacoll mount: {error}", file=sys.stderr)
        return 1
    print(f"rdmacoll mount: {arguments.folder} has the files of the job at {this.board.address}")
    sys.stdout.flush()
    try:
        why = _wait(mounted, this)
    finally:
        mounted.stop()
    if why:
        print(f"rdmacoll mount: {arguments.folder} was unmounted: {why}", file=sys.stderr)
    return 0


def _module() -> ModuleType:
    try:
        return importlib.import_module("rdmacoll._fuse")
    except ImportError as error:
        raise ImportError(
            f"this rdmacoll was built without it ({error}): install libfuse3-dev (Debian, Ubuntu) "
            "or fuse3-devel (Red Hat, SUSE), and install rdmacoll again"
        ) from None


def _check_folder(folder: str) -> None:
    """Raises ValueError, OSError."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise ValueError(
            f"{folder} cannot be read ({error.strerror}): give a folder that is there and empty; "
            f"if it is a mount whose process is gone: fusermount3 -u {folder}"
        ) from None
    if os.path.ismount(folder):
        raise ValueError(f"{folder} is a mount already: give another folder, or unmount that")
    if names:
        raise ValueError(f"{folder} has {len(names)} entries, which would be hidden: empty it")


def _wait(mounted: _fuse.Mount, this: Worker) -> str:
    """Why it has ended; empty: it was told to."""
    told = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        told.set()

    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, end)
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
