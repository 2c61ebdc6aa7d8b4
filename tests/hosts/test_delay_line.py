"""The delay line: late by what it was told, as slow, as unreliable, and gone afterwards.

Floor: tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

from hosts.stand import Host, delay_line

DELAY_MS = 20.0
NEAR_MS = 10.0  # what the switch takes at most, on a busy machine
RATE_MBIT = 80.0
SENT_BYTES = 4_000_000
LIMIT_S = 60.0

SINK = """
import socket
server = socket.create_server(("", 7000))
print("up", flush=True)
connection, _ = server.accept()
count = 0
while data := connection.recv(1 << 20):
    count += len(data)
connection.sendall(b"%d" % count)
"""
SOURCE = f"""
import socket
connection = socket.create_connection(("nodeB", 7000))
connection.sendall(bytes({SENT_BYTES}))
connection.shutdown(socket.SHUT_WR)
print(int(connection.recv(100)))
"""


def round_trip_ms(a: Host, address: str) -> float:
    """The fastest of some."""
    said = a.run("ping", "-c", "5", "-i", "0.2", address).stdout
    found = re.search(r"min/avg/max/mdev = ([\d.]+)/", said)
    assert found, said
    return float(found[1])


def seconds_to_send(a: Host, b: Host) -> float:
    sink = b.start(sys.executable, "-c", SINK, stdout=subprocess.PIPE)
    assert sink.stdout is not None and sink.stdout.readline() == "up\n"
    began = time.monotonic()
    assert a.run(sys.executable, "-c", SOURCE).stdout == f"{SENT_BYTES}\n"
    took = time.monotonic() - began
    assert sink.communicate(timeout=LIMIT_S) and sink.returncode == 0
    return took


def test_what_it_carries_is_late_both_ways(two_hosts: list[Host]) -> None:
    a, b = two_hosts
    with delay_line(a, b, delay_ms=DELAY_MS):
        assert 2 * DELAY_MS <= round_trip_ms(a, b.address) < 20 * DELAY_MS
        assert 2 * DELAY_MS <= round_trip_ms(b, a.address6) < 20 * DELAY_MS
    assert round_trip_ms(a, b.address) < NEAR_MS


def test_it_is_as_fast_as_it_was_told_and_loses_nothing(two_hosts: list[Host]) -> None:
    a, b = two_hosts
    with delay_line(a, b, delay_ms=1, rate_mbit=RATE_MBIT):
        assert seconds_to_send(a, b) > SENT_BYTES * 8 / (RATE_MBIT * 1e6)


def test_tcp_mends_what_it_loses(two_hosts: list[Host]) -> None:
    a, b = two_hosts
    with delay_line(a, b, delay_ms=1, loss=0.01):
        seconds_to_send(a, b)


def test_it_loses_what_it_was_told(two_hosts: list[Host]) -> None:
    a, b = two_hosts
    with delay_line(a, b, delay_ms=0, loss=0.5):
        done = a.run("ping", "-c", "200", "-i", "0.002", "-W", "1", b.address)
        answered = re.search(r"(\d+) received", done.stdout)
        assert answered and 10 < int(answered[1]) < 100, done.stdout  # 50 of 200, 6 to a deviation


def test_one_that_cannot_be_made_says_why(two_hosts: list[Host]) -> None:
    a, b = two_hosts
    with (
        delay_line(a, b, delay_ms=1),
        pytest.raises(Exception, match="Device or resource busy"),
        delay_line(a, b, delay_ms=1),
    ):
        pass
