"""The exchange through the agents, spoken by ranks that are plain python.

Floor: tests.
"""

import selectors
import shutil
import socket
import time
from pathlib import Path

import pytest
from job_runner import LIMIT_S, Jobs
from rdmacoll.launcher.agent import caller
from rdmacoll.launcher.agent.rank_env import Attempt, Master
from rdmacoll.launcher.agent.rendezvous import Rendezvous

TWO_HOSTS = ["-np", "3", "-H", "localhost:2,127.0.0.1:1"]
BOTH = pytest.mark.parametrize("options", [["-np", "3"], TWO_HOSTS], ids=["one host", "two hosts"])


@pytest.fixture(autouse=True)
def _client(jobs: Jobs) -> None:
    shutil.copy(Path(__file__).parent / "client.py", jobs.folder)


@BOTH
def test_everybody_gets_every_card(jobs: Jobs, options: list[str]) -> None:
    text = """
        from client import *
        payloads = exchange(b"payload of %d" % RANK)
        assert payloads == [b"payload of %d" % rank for rank in range(WORLD)], payloads
        print("ok")
    """
    done = jobs.run_script(text, *options)
    assert sorted(done.stdout.splitlines()) == [f"[{rank}]: ok" for rank in range(3)]
    assert done.returncode == 0


@BOTH
def test_a_sequence_of_exchanges(jobs: Jobs, options: list[str]) -> None:
    """Payloads of all sizes, the largest and the empty one too; ranks come in any order."""
    text = """
        import random, time
        from client import *
        sizes = [0, 1, 65536, 1000, 0, 30000]
        for k, size in enumerate(sizes):
            time.sleep(random.random() * 0.02)
            payloads = exchange(bytes([RANK + k]) * (size // (RANK + 1)))
            assert payloads == [bytes([r + k]) * (size // (r + 1)) for r in range(WORLD)]
    """
    assert jobs.run_script(text, *options).returncode == 0


def test_a_rank_that_runs_ahead_waits_for_its_turn(jobs: Jobs) -> None:
    """Its second connection belongs to the second exchange, even while the first is on."""
    text = """
        import time
        from client import *
        if RANK == 0:
            first, second = connect(), connect()
            first.sendall(hello(b"first"))
            time.sleep(0.1)
            second.sendall(hello(b"second"))
            assert answer(first) == [b"first", b"other 1"]
            assert answer(second) == [b"second", b"other 2"]
        else:
            time.sleep(0.3)
            assert exchange(b"other 1") == [b"first", b"other 1"]
            assert exchange(b"other 2") == [b"second", b"other 2"]
    """
    assert jobs.run_script(text, "-np", "2").returncode == 0


def test_a_rank_may_give_up_and_come_again(jobs: Jobs) -> None:
    text = """
        import time
        from client import *
        if RANK == 0:
            with connect() as sock:
                sock.sendall(hello(b"too early"))
                time.sleep(0.2)
            open("gave up", "w")
        else:
            while not os.path.exists("gave up"):
                time.sleep(0.01)
            time.sleep(0.2)
        assert exchange(b"%d" % RANK) == [b"0", b"1"]
    """
    assert jobs.run_script(text, "-np", "2").returncode == 0


@BOTH
def test_a_rank_that_does_not_wait_is_heard(jobs: Jobs, options: list[str]) -> None:
    """And its next connection belongs to the next exchange."""
    text = """
        from client import *
        if RANK == 1:
            with connect() as sock:
                sock.sendall(hello(b"without me", magic=b"RDMACOL0"))
        else:
            assert exchange(b"payload")[1] == b"without me"
        assert exchange(b"%d" % RANK) == [b"0", b"1", b"2"]
    """
    assert jobs.run_script(text, *options).returncode == 0


@BOTH
def test_a_rank_that_never_comes_is_named(jobs: Jobs, options: list[str]) -> None:
    text = """
        import time
        from client import *
        if RANK == 0:
            exchange(b"payload")
        time.sleep(1000)
    """
    done = jobs.run_script(text, *options, "--start-timeout", "6")
    assert done.returncode == 1
    host = "127.0.0.1" if "-H" in options else "localhost"
    assert f"rdmarun: ranks 1 on localhost, 2 on {host} did not open an endpoint" in done.stderr
    assert "within 6 s" in done.stderr


@BOTH
def test_a_rank_that_ends_without_coming_is_named(jobs: Jobs, options: list[str]) -> None:
    text = """
        from client import *
        if RANK != 2:
            exchange(b"payload")
    """
    done = jobs.run_script(text, *options)
    assert done.returncode == 1
    assert "rdmarun: rank 2 on " in done.stderr
    assert "ended (status 0) without the group that others wait for" in done.stderr


def test_a_rank_that_ended_before_anybody_came_is_named(jobs: Jobs) -> None:
    """After the only other one has come nothing happens that would wake the agent."""
    text = """
        import time
        from client import *
        if RANK == 0:
            time.sleep(0.5)
            exchange(b"payload")
    """
    done = jobs.run_script(text, "-np", "2")
    assert done.returncode == 1
    assert "rdmarun: rank 1 on localhost ended (status 0)" in done.stderr


@pytest.mark.parametrize(
    ("sends", "says"),
    [
        ("b'GET / HTTP/1.1 and so on'", "expects b'RDMACOL1' first"),
        ("hello(b'', world=7)", "rank 0 says the world has 7 ranks; it has 1"),
        ("hello(b'', rank=5)", "is rank 0 and says that it is rank 5"),
        ("hello(b'x' * 65537)", "a payload of 65537 bytes: the limit is 65536"),
        ("hello(b'payload') + b'x'", "rank 0 sent more than its payload of 7 bytes"),
    ],
)
def test_what_a_client_gets_wrong_is_said(jobs: Jobs, sends: str, says: str) -> None:
    text = f"""
        from client import *
        try:
            with connect() as sock:
                sock.sendall({sends})
                answer(sock)
        except Refused as error:
            print(error)
        assert exchange(b"right") == [b"right"]
    """
    done = jobs.run_script(text, "-np", "1")
    assert (done.returncode, done.stdout) == (0, f"[0]: {done.stdout[5:]}")
    assert says in done.stdout


@BOTH
def test_only_ranks_are_served(jobs: Jobs, options: list[str]) -> None:
    """A child of each rank asks first, for everything; the ranks then get what they ask for."""
    text = """
        import sys
        from client import *
        if sys.argv[1:] == ["child"]:
            for magic in b"RDMACOL1", b"RDMACOL0", b"RDMACOLS", b"RDMACOLJ", b"RDMACOLI":
                try:
                    with connect() as sock:
                        sock.sendall(hello(b"child's", magic=magic))
                        answer(sock)
                except Refused as error:
                    assert f"process {os.getpid()} is no rank that this agent" in str(error), error
                    print("refused")
            sys.exit()
        import subprocess
        subprocess.run([sys.executable, __file__, "child"], check=True)
        payloads = [b"payload of %d" % rank for rank in range(WORLD)]
        assert exchange(payloads[RANK]) == payloads
        assert len(secret()) == 32
    """
    done = jobs.run_script(text, *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused") == 3 * 5


def test_silent_connections_keep_nobody_out(jobs: Jobs) -> None:
    """Rank 0 makes more connections than it may have at a time; its oldest ones still work."""
    text = """
        from client import *
        if RANK == 0:
            first = connect()
            silent = [connect() for _ in range(200)]
            assert silent[-1].recv(1) == b""  # hung up on
            first.sendall(hello(b"0"))
            assert answer(first) == [b"0", b"1"]
        else:
            assert exchange(b"1") == [b"0", b"1"]
    """
    done = jobs.run_script(text, "-np", "2")
    assert done.returncode == 0, done.stderr


def test_silence_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller, "SILENCE_S", 0.05)
    selector = selectors.DefaultSelector()
    attempt = Attempt(0, Master("127.0.0.1", 1), b"s" * 32)

    def nobody(pid: int) -> None:
        pass

    close = caller.Caller.close
    agent = Rendezvous(range(1), 1, attempt, lambda pid: 0, nobody, nobody, selector, close)

    def let_in_and_hear() -> None:
        for key, _ in selector.select(0.02):
            key.data()

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.connect("\0" + agent.address[1:])
        silent.sendall(b"RDMA")
        let_in_and_hear()
        assert agent.deadline is not None
        deadline = time.monotonic() + LIMIT_S
        while agent.deadline is not None:
            let_in_and_hear()
            agent.poll()
            assert time.monotonic() < deadline
        assert silent.recv(1) == b""
    agent.close()
    selector.close()
