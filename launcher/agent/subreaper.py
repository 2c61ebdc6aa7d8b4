"""The subreaper: what mpiexec starts. It forks the agent and leaves no process behind it.

If the agent dies (kill -9 included), the subreaper inherits the ranks and all they started, and
kills them. If the subreaper or mpiexec dies, the agent does the same from its side.
Floor: launcher/agent. Thread: the main one.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable

from rdmacoll.launcher.base.processes import become_subreaper, die_with_parent, kill_descendants

AGENT_GRACE_S = 2.0


def keep(agent: Callable[[], int]) -> int:
    """Runs agent() in a child process and returns its status; negative: a signal killed it.

    In the child it does not return: SystemExit carries the status out.
    """
    become_subreaper()
    launcher, subreaper = os.getppid(), os.getpid()
    pid = os.fork()
    if pid == 0:
        become_subreaper()
        os.setsid()  # mpiexec kills the subreaper's session; the agent sees it, as it is not in it
        die_with_parent(signal.SIGTERM, subreaper)
        sys.exit(_run(agent))
    status = _watch(pid, launcher)
    kill_descendants()
    return status


def _run(agent: Callable[[], int]) -> int:
    status = 1
    try:
        status = agent()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def _watch(agent: int, launcher: int) -> int:
    """Waits for the agent; ends it when told to, or when the process that started us is gone."""
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sig, lambda *_: None)
    agent_fd = os.pidfd_open(agent)
    poll = select.poll()
    poll.register(agent_fd, select.POLLIN)
    poll.register(wake_read, select.POLLIN)
    try:
        launcher_fd = os.pidfd_open(launcher)
        poll.register(launcher_fd, select.POLLIN)
    except ProcessLookupError:  # gone already
        os.kill(agent, signal.SIGTERM)
    kill_at = None
    while True:
        left_ms = None if kill_at is None else max(0.0, kill_at - time.monotonic()) * 1000
        ready = [fd for fd, _ in poll.poll(left_ms)]
        if agent_fd in ready:
            return os.waitstatus_to_exitcode(os.waitpid(agent, 0)[1])
        if kill_at is not None and time.monotonic() >= kill_at:
            os.kill(agent, signal.SIGKILL)
            kill_at = None
        for fd in ready:
            poll.unregister(fd)  # one is enough: the agent ends now
            os.kill(agent, signal.SIGTERM)
            kill_at = time.monotonic() + AGENT_GRACE_S
