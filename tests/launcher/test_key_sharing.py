"""How the job's key gets to the hosts: which host is this one, until when, and by what sockets.

What the agents then prove by it is in test_trust.py.
Floor: tests.
"""

import secrets
import socket
import threading
import time
from contextlib import ExitStack, suppress

import pytest
from rdmacoll.launcher import rdmarun
from rdmacoll.launcher.base.hosts import Host
from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.command.mpi_command import Flavour
from rdmacoll.launcher.command.mpi_find import Mpi
from rdmacoll.launcher.command.options import parse
from rdmacoll.launcher.keys import key_sharing
from rdmacoll.launcher.keys.key import Key
from rdmacoll.launcher.keys.key_holder import _serve, ask_for_key, key_address
from rdmacoll.launcher.keys.key_sharing import KeyNotShared, KeySharing, is_here

KEY = Key(b"k" * 32, "run")
JOB = Job([Host("nodeA", 1), Host("nodeB", 1)], [], "/", {}, "run", start_timeout_s=7.0)
OF_NO_HOST = "203.0.113.1"  # for documentation


@pytest.mark.parametrize(("address", "here"), [(OF_NO_HOST, False), ("127.0.1.1", True)])
def test_an_address_is_here_though_any_can_be_bound_to(
    address: str, here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where net.ipv4.ip_nonlocal_bind is 1."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr(socket.socket, "bind", lambda *_: None)
    assert is_here(Host("node", 1)) == here


def test_looking_up_names_counts_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []

    def look_up(host: Host) -> bool:
        looked_up.append(host.name)
        return True

    monkeypatch.setattr(key_sharing, "is_here", look_up)
    with pytest.raises(KeyNotShared, match=r"host nodeA: .* not within 7 s \(--start-timeout\)"):
        KeySharing(JOB, KEY, {}).start(up_by=time.monotonic())
    assert looked_up == ["nodeA"]


def test_the_keys_and_the_agents_have_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still, except for an hour that the keys take."""
    now_s = 1000.0
    deadlines = []

    class SharesForLong:
        def __init__(self, *_: object) -> None: ...

        def start(self, up_by: float) -> None:
            nonlocal now_s
            deadlines.append(up_by)
            now_s += 3600

        def close(self) -> None: ...

    class Launches:
        def __init__(self, *args: object) -> None:
            deadlines.extend(arg for arg in args if isinstance(arg, float))

        def run(self) -> int:
            return 0

    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    monkeypatch.setattr(rdmarun, "KeySharing", SharesForLong)
    monkeypatch.setattr(rdmarun, "Launch", Launches)
    options = parse(["-H", "nodeA,nodeB", "script.py"], {}, "0")
    rdmarun._run_by_mpi(JOB, Mpi("mpiexec", Flavour.MPICH, ""), ["agent"], options)
    assert deadlines == [1007.0, 1007.0]


def test_a_key_holder_whose_queue_is_full_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = secrets.token_hex(8)
    was_full = threading.Event()

    def wait(_: float) -> None:
        was_full.set()

    monkeypatch.setattr(time, "sleep", wait)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(key_address(run_id, 0))
        listener.listen(0)
        with suppress(BlockingIOError):
            while True:
                other = stack.enter_context(socket.socket(socket.AF_UNIX))
                other.setblocking(False)
                other.connect(key_address(run_id, 0))

        def serve() -> None:
            was_full.wait()
            listener.settimeout(0.1)
            while not done.is_set():
                _serve(listener, KEY.secret)

        done = threading.Event()
        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        assert ask_for_key(run_id, 0) == KEY.secret
        done.set()
        serving.join()
