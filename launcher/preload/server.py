"""The process that imports the modules of --preload once, and forks the ranks of its host.

It ends with the agent, which is its parent and becomes that of the ranks.
Protocol, over a socket that keeps messages apart, all in JSON:
  agent -> server  the agent's process id, the modules, the ranks' PYTHONPATH
  server -> agent  {} once all are imported, or {"error": text}; then it ends
  agent -> server  for each rank of a batch its own variables, and the CPUs that it is bound to, if
                   any, with two descriptors, its stdout and stderr; after the last of them []
  rank -> agent    {"rank": rank, "pid": pid} once it is one; or for the rest of the batch
                   {"error": text}
Floor: launcher/preload. Thread: the main one; there is no other.
"""

import ctypes
import gc
import importlib
import json
import os
import signal
import site
import socket
import sys
import traceback

from rdmacoll.launcher.base.processes import die_with_parent, wait_until_gone

from . import MESSAGE_BYTES, ROOM, ROOM_BYTES
from .fork_safety import reseed, unsafe_to_fork

Order = tuple[dict[str, str], list[int]] | tuple[()]

_libc = ctypes.CDLL(None)
_libc.getenv.restype = ctypes.c_void_p


def serve() -> None:
    """Returns in ranks only."""
    room = _libc.getenv(ROOM.encode()) - len(ROOM) - 1
    agent = socket.socket(fileno=int(os.environ.pop(ROOM)))
    try:
        agent_pid, names, python_path = json.loads(agent.recv(MESSAGE_BYTES))
        _leave_start_up(python_path)
        _import_all(names, agent)
        while True:
            order, fds = _next(agent)
            forker = os.fork()
            if forker == 0:
                _fork_ranks(agent, agent_pid, room, order, fds)
                return
            _close(fds)
            os.waitpid(forker, 0)
    except BaseException as error:
        _fail(agent, f"the process of --preload: {error!r}")
        raise


def _leave_start_up(python_path: str | None) -> None:
    """Undoes what brought python here, and runs the user's own hook of this name."""
    hook = sys.modules.pop("sitecustomize")
    folder = os.path.dirname(str(hook.__file__))
    sys.path.remove(folder)
    sys.path_importer_cache.pop(folder, None)
    os.environ.pop("PYTHONPATH")
    if python_path is not None:
        os.environ["PYTHONPATH"] = python_path
    site.execsitecustomize()
    sys.modules.setdefault("sitecustomize", hook)


def _import_all(names: list[str], agent: socket.socket) -> None:
    folder = _first_folder()
    sys.path[:0] = folder
    for name in names:
        if error := _import(name):
            _fail(agent, f"--preload {name}: {error}")
            os._exit(1)
    for entry in folder:
        sys.path.remove(entry)
    _flush()
    _share_memory()
    agent.send(b"{}")


def _share_memory() -> None:
    """Ranks get copies of what they write to. So their garbage collections leave this out."""
    gc.collect()
    gc.freeze()
    # At its end python clears modules that somebody still holds. The others it leaves to the
    # collector, so their finalizers would not run.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(list(sys.modules.values())))


def _first_folder() -> list[str]:
    """What python will put before its path, once it looks at the script."""
    if getattr(sys.flags, "safe_path", False):  # python 3.11
        return []
    script = sys.argv[0]
    if script in ("-m", "-c"):
        return [os.getcwd()]
    path = os.path.realpath(script)
    return [path if os.path.isdir(path) else os.path.dirname(path)]


def _import(name: str) -> str:
    """What is wrong with it, in a line; a traceback has been printed if it is the module's own."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            traceback.print_exc()
        return str(error)
    except BaseException as error:
        traceback.print_exc()
        return "".join(traceback.format_exception_only(error)).strip()
    return unsafe_to_fork()


def _next(agent: socket.socket) -> tuple[Order, list[int]]:
    """The next message with its descriptors. Ends the process if there is no agent any more."""
    data, fds, _, _ = socket.recv_fds(agent, MESSAGE_BYTES, 2)
    if not data:
        os._exit(0)
    order: Order = json.loads(data)
    return order, fds


def _fork_ranks(
    agent: socket.socket, agent_pid: int, room: int, order: Order, fds: list[int]
) -> None:
    """In a process between server and ranks: the agent adopts the ranks when it ends.

    Returns in ranks only.
    """
    forker = os.getpid()
    failed = False
    while order:
        try:
            pid = -1 if failed else os.fork()
        except OSError as error:
            pid, failed = -1, True
            limit = isinstance(error, BlockingIOError)
            _fail(agent, "no more processes may be started (ulimit -u)" if limit else str(error))
        if pid == 0:
            wait_until_gone(forker)
            die_with_parent(signal.SIGKILL, agent_pid)
            own, cpus = order
            _become_rank(own, cpus, fds, room)
            agent.send(json.dumps({"rank": int(own["RANK"]), "pid": os.getpid()}).encode())
            agent.close()
            return
        _close(fds)
        order, fds = _next(agent)
    os._exit(0)


def _fail(agent: socket.socket, error: str) -> None:
    agent.send(json.dumps({"error": error}).encode())


def _become_rank(own: dict[str, str], cpus: list[int], fds: list[int], room: int) -> None:
    os.setsid()
    if cpus:
        os.sched_setaffinity(0, cpus)
    for fd, standard in zip(fds, (1, 2), strict=True):
        os.dup2(fd, standard)
    _close(fds)
    os.environ.update(own)
    shown = b"\0".join(os.fsencode(f"{name}={value}") for name, value in own.items())
    ctypes.memmove(room, shown[: ROOM_BYTES - 1].ljust(ROOM_BYTES, b"\0"), ROOM_BYTES)
    reseed()


def _flush() -> None:
    """What the imports have said but not written, every rank would say as well."""
    for stream in sys.stdout, sys.stderr:
        stream.flush()
    _libc.fflush(None)


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
