"""The exchange of cards through the agents, spoken by ranks that are plain python.

Floor: tests.
"""

import shutil
from pathlib import Path

import pytest
from conftest import Jobs

TWO_HOSTS = ["-np", "3", "-H", "localhost:2,127.0.0.1:1"]
BOTH = pytest.mark.parametrize("options", [["-np", "3"], TWO_HOSTS], ids=["one host", "two hosts"])


@pytest.fixture(autouse=True)
def _client(jobs: Jobs) -> None:
    shutil.copy(Path(__file__).parent / "client.py", jobs.folder)


@BOTH
def test_everybody_gets_every_card(jobs: Jobs, options: list[str]) -> None:
    text = """
        from client import *
        cards = exchange(b"card of %d" % RANK)
        assert cards == [b"card of %d" % rank for rank in range(WORLD)], cards
        print("ok")
    """
    done = jobs.run_script(text, *options)
    assert sorted(done.stdout.splitlines()) == [f"[{rank}]: ok" for rank in range(3)]
    assert done.returncode == 0


@BOTH
def test_a_sequence_of_exchanges(jobs: Jobs, options: list[str]) -> None:
    """Cards of all sizes, the largest and the empty one too; ranks come in any order."""
    text = """
        import random, time
        from client import *
        sizes = [0, 1, 65536, 1000, 0, 30000]
        for k, size in enumerate(sizes):
            time.sleep(random.random() * 0.02)
            cards = exchange(bytes([RANK + k]) * (size // (RANK + 1)))
            assert cards == [bytes([r + k]) * (size // (r + 1)) for r in range(WORLD)]
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
            assert exchange(b"card")[1] == b"without me"
        assert exchange(b"%d" % RANK) == [b"0", b"1", b"2"]
    """
    assert jobs.run_script(text, *options).returncode == 0


@BOTH
def test_a_rank_that_never_comes_is_named(jobs: Jobs, options: list[str]) -> None:
    text = """
        import time
        from client import *
        if RANK == 0:
            exchange(b"card")
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
            exchange(b"card")
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
            exchange(b"card")
    """
    done = jobs.run_script(text, "-np", "2")
    assert done.returncode == 1
    assert "rdmarun: rank 1 on localhost ended (status 0)" in done.stderr


@pytest.mark.parametrize(
    ("sends", "says"),
    [
        ("b'GET / HTTP/1.1 and so on'", "expects b'RDMACOL1' first"),
        ("hello(b'', world=7)", "rank 0 says the world has 7 ranks; it has 1"),
        ("hello(b'', rank=5)", "rank 5 is not of this host, which has ranks 0"),
        ("hello(b'x' * 65537)", "a card of 65537 bytes: the limit is 65536"),
        ("hello(b'card') + b'x'", "rank 0 sent more than its card of 4 bytes"),
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
