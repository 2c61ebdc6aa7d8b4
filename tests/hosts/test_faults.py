"""Ranks and hosts that are lost, late or hostile, over tcp: who waits for them raises soon, and
nobody else notices.

Limits are ten times what is expected (EXPECTED_S): the tests share their machine.

Floor: tests.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts.ranks import JOIN, PORT, Rank, Start
from hosts.stand import Host, delay_line

TIMES = 10
EXPECTED_S = {"killed": 0.2, "cut": 4.0, "stopped": 7.0}
STALL = {"RDMACOLL_STALL_TIMEOUT_MS": "5000"}

LOOP = (
    JOIN
    + """
step = 0
try:
    while True:
        value = torch.ones(1000)
        dist.all_reduce(value)
        assert value.eq(world).all()
        step += 1
        if step == 20:
            say("ready")
except RuntimeError as error:
    say_error(error)
"""
)
WAIT = (
    JOIN
    + """
dist.barrier()
say("ready")
try:
    if rank == 0:
        dist.recv(torch.ones(1), world - 1)
    time.sleep(600)
except RuntimeError as error:
    say_error(error)
"""
)


UNTIL_TOLD = (
    JOIN
    + """
step = 0
while True:
    value = torch.tensor([1.0, float(rank == 0 and test.poll())])
    dist.all_reduce(value)
    assert value[0] == world
    step += 1
    if step == 20:
        say("ready")
    if value[1]:
        break
say("ended", step)
dist.destroy_process_group()
"""
)


def end(ranks: list[Rank]) -> None:
    """None may have failed."""
    ranks[0].tell()
    for rank in ranks:
        rank.wait_for("ended")
        assert rank.status() == 0


def ready(ranks: list[Rank]) -> list[Rank]:
    for rank in ranks:
        rank.wait_for("ready")
    return ranks


def all_raise(ranks: list[Rank], since: float, what: str) -> list[str]:
    """What they said of it."""
    said = [rank.wait_for("raised", TIMES * EXPECTED_S[what]) for rank in ranks]
    took = [float(words[1]) - since for words in said]
    print(f"{what}: the ranks raised after {', '.join(f'{s:.2f} s' for s in took)}")
    assert max(took) < TIMES * EXPECTED_S[what]
    return [" ".join(words[2:]) for words in said]


@pytest.mark.parametrize("spread", ["2x1", "2x2"])
def test_a_rank_that_is_killed_on_another_host(start: Start, spread: str) -> None:
    ranks = ready(start(spread, LOOP))
    since = time.monotonic()
    ranks[-1].kill()
    for error in all_raise(ranks[:-1], since, "killed"):
        assert f"rank {len(ranks) - 1}" in error


@pytest.mark.parametrize("script", [LOOP, WAIT], ids=["in all_reduce", "in recv"])
def test_a_cable_that_is_cut(start: Start, two_hosts: list[Host], script: str) -> None:
    ranks = ready(start("2x1", script))
    since = time.monotonic()
    two_hosts[1].cut()
    try:
        all_raise(ranks if script == LOOP else ranks[:1], since, "cut")
    finally:
        two_hosts[1].heal()


def test_a_cable_that_is_cut_for_a_moment(start: Start, two_hosts: list[Host]) -> None:
    ranks = ready(start("2x1", UNTIL_TOLD))
    two_hosts[1].cut()
    time.sleep(0.5)
    two_hosts[1].heal()
    end(ranks)


def test_a_rank_that_is_stopped(start: Start) -> None:
    ranks = ready(start("2x2", LOOP, env=STALL))
    since = time.monotonic()
    os.kill(ranks[-1].pid, signal.SIGSTOP)
    for error in all_raise(ranks[:-1], since, "stopped"):
        assert f"rank {len(ranks) - 1}" in error


COMPUTE = (
    JOIN
    + """
import ctypes
sleep = (ctypes.PyDLL if keeps_gil else ctypes.CDLL)(None).sleep
large = torch.arange(2_000_000, dtype=torch.float32)
dist.barrier()
if rank == 2:
    sleep(seconds)
    received = torch.empty_like(large)
    dist.recv(received, 0)
    assert torch.equal(received, large)
else:
    began = time.monotonic()
    work = dist.isend(large, 2) if rank == 0 else None
    small = torch.zeros(100)
    for _ in range(200):
        dist.send(small, 1) if rank == 0 else dist.recv(small, 0)
        dist.recv(small, 1) if rank == 0 else dist.send(small, 0)
    say("messages", time.monotonic() - began)
    if work:
        work.wait()
dist.barrier()
say("ended")
dist.destroy_process_group()
"""
)


@pytest.mark.parametrize(
    "seconds", [8, pytest.param(60, marks=pytest.mark.nightly)], ids=["short", "long"]
)
@pytest.mark.parametrize("gil", ["with", "without"])
def test_a_rank_that_computes_for_long(start: Start, seconds: int, gil: str) -> None:
    """Longer than a host may be silent. Rank 0 has a large message for it."""
    ranks = start("2+1", f"seconds, keeps_gil = {seconds}, {gil == 'with'}\n" + COMPUTE)
    for rank in ranks[:2]:
        took = float(rank.wait_for("messages")[1])
        print(f"200 messages and answers to another rank meanwhile: {took:.2f} s")
        assert took < seconds / 2
    for rank in ranks:
        rank.wait_for("ended", seconds + 60)
        assert rank.status() == 0


LEAVES = (
    JOIN
    + """
neighbours = [dist.new_group(pair) for pair in ([0, 1], [2, 3])][rank // 2]
large = torch.zeros(200_000)
step = 0
while True:
    for _ in range(step % 7):
        dist.barrier(group=neighbours)
    time.sleep(0.0 if rank == 2 else 0.02)
    dist.broadcast(large, 2)
    say("complete")
    test.recv()
    step += 1
"""
)


def test_what_a_rank_has_to_send_leaves_while_it_does_something_else(start: Start) -> None:
    """Its broadcast ends when its socket is full of what others still wait for."""
    ranks = start("2x2", LEAVES)
    for _ in range(100):
        for rank in ranks:
            rank.wait_for("complete", 20)
        for rank in ranks:
            rank.tell()


EXACT = (
    JOIN
    + """
for count in (1, 1000, 100_000, 1_000_000):
    for step in range(5):
        value = torch.arange(count, dtype=torch.float64) * (rank + 1) + step
        dist.all_reduce(value)
        assert torch.equal(value, torch.arange(count, dtype=torch.float64) * 3 + 2 * step)
say("ended")
dist.destroy_process_group()
"""
)


@pytest.mark.parametrize(
    ("loss", "rate_mbit"), [(0.01, 0.0), (0.0, 50.0)], ids=["that loses 1 %", "that is slow"]
)
def test_a_line(start: Start, two_hosts: list[Host], loss: float, rate_mbit: float) -> None:
    with delay_line(*two_hosts, delay_ms=2, loss=loss, rate_mbit=rate_mbit):
        for rank in start("2x1", EXACT):
            rank.wait_for("ended")
            assert rank.status() == 0


STRANGER = """
import os, socket, sys, time
places = [(a, int(p)) for a, _, p in (place.partition("/") for place in sys.argv[1:])]
silent = [socket.create_connection(place, 10) for place in places for _ in range(20)]
for place in places:
    for size in (0, 1, 24, 100, 65536):
        with socket.create_connection(place, 10) as connection:
            connection.settimeout(0.2)
            try:
                connection.sendall(os.urandom(size))
                connection.recv(100)
            except OSError:
                pass
time.sleep(1)
"""
TCP_LISTEN = "0A"


def listeners(host: Host) -> Iterator[tuple[str, int]]:
    """Addresses and ports of this host on which somebody listens."""
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        lines = Path(f"/proc/{host.keeper.holder}/net/{table}").read_text().splitlines()[1:]
        for fields in map(str.split, lines):
            if fields[3] == TCP_LISTEN:
                address, _, port = fields[1].partition(":")
                words = [int(address[at : at + 8], 16) for at in range(0, len(address), 8)]
                packed = struct.pack(f"={len(words)}I", *words)
                yield socket.inet_ntop(family, packed), int(port, 16)


def test_strangers_on_the_ports(start: Start, two_hosts: list[Host]) -> None:
    a, b = two_hosts
    ranks = ready(start("2x1", UNTIL_TOLD))
    found = [f"{address}/{port}" for address, port in listeners(a) if port != PORT]
    assert found, "the rank of the first host listens nowhere"
    stranger = b.run(sys.executable, "-c", STRANGER, *found)
    assert stranger.returncode == 0, stranger.stdout
    end(ranks)
