"""A long line between two hosts: `delay_line A B DELAY_MS LOSS RATE_MBIT`, until its standard input
ends; it says "up". A and B are HOLDER/IPV4/IPV6; 0 Mbit is as fast as it goes.

Each host gets a tun device and sends through it what is for the other's addresses, so nothing else
changes for the hosts. A packet leaves its host at the rate of the line, arrives DELAY_MS later, or
is lost with the probability LOSS. Without loss the kernel cuts and joins no packets of TCP itself:
they pass here in pieces of 64 KB, which Python can do at more than 1 Gbit/s.

Floor: tests.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import os
import random
import select
import struct
import subprocess
import sys
import time

from hosts import FORBIDDEN
from hosts.enter import enter

DEVICE = "line0"
TUNSETIFF, TUNSETOFFLOAD = 0x4004_54CA, 0x4004_54D0
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
OFFLOAD_CHECKSUM, OFFLOAD_TCP4, OFFLOAD_TCP6 = 1, 2, 4
VNET_HEADER_BYTES = 10
PACKET_BYTES = VNET_HEADER_BYTES + 65_536
QUEUED_PACKETS = 10_000  # by the kernel: it drops what comes on top
PACKETS_AT_A_TIME = 16  # of one direction
AHEAD_S = 0.001  # a packet is taken from its host so long before the line is free, not earlier
IDLE_S = 1.0


def open_device(holder: str, peers: list[str], loss: float) -> int:
    """In the host of that holder, in which this process stays."""
    enter(int(holder), ["user", "net"])
    try:
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    except (PermissionError, FileNotFoundError) as error:
        print(f"this user can make no delay line: {error}", file=sys.stderr)
        sys.exit(FORBIDDEN)
    flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH14x", DEVICE.encode(), flags))
    if not loss:
        fcntl.ioctl(device, TUNSETOFFLOAD, OFFLOAD_CHECKSUM | OFFLOAD_TCP4 | OFFLOAD_TCP6)
    queue = ["txqueuelen", str(QUEUED_PACKETS)]
    subprocess.run(["ip", "link", "set", DEVICE, *queue, "up"], check=True)
    for peer in peers:
        subprocess.run(["ip", "route", "add", peer, "dev", DEVICE], check=True)
    return device


class Direction:
    """From one device to the other."""

    def __init__(
        self, source: int, sink: int, delay_s: float, loss: float, bytes_per_s: float
    ) -> None:
        self.source, self._sink = source, sink
        self._delay_s, self._loss, self._bytes_per_s = delay_s, loss, bytes_per_s
        self._under_way: collections.deque[tuple[float, bytes]] = collections.deque()
        self._free_at = 0.0  # when the last packet has left its host

    def takes(self, now: float) -> bool:
        return self._free_at <= now + AHEAD_S

    def next_event(self) -> float:
        """When a packet arrives, or one more may leave."""
        arrival = self._under_way[0][0] if self._under_way else float("inf")
        return (
            min(arrival, self._free_at - AHEAD_S) if not self.takes(time.monotonic()) else arrival
        )

    def deliver(self) -> None:
        while self._under_way and self._under_way[0][0] <= time.monotonic():
            with contextlib.suppress(BlockingIOError):  # its host's queue is full: lost
                os.write(self._sink, self._under_way.popleft()[1])

    def take(self) -> None:
        for _ in range(PACKETS_AT_A_TIME):
            now = time.monotonic()
            if not self.takes(now):
                return
            try:
                packet = os.read(self.source, PACKET_BYTES)
            except BlockingIOError:
                return
            self._free_at = max(self._free_at, now)
            if self._bytes_per_s:
                self._free_at += (len(packet) - VNET_HEADER_BYTES) / self._bytes_per_s
            if random.random() >= self._loss:
                self._under_way.append((self._free_at + self._delay_s, packet))


def carry(directions: list[Direction]) -> None:
    """Until standard input ends. select(2) waits for microseconds, poll(2) for milliseconds."""
    by_source = {direction.source: direction for direction in directions}
    while True:
        now = time.monotonic()
        wait_s = min(direction.next_event() for direction in directions) - now
        taking = [direction.source for direction in directions if direction.takes(now)]
        ready, _, _ = select.select([0, *taking], [], [], min(max(wait_s, 0.0), IDLE_S))
        if 0 in ready:
            return
        for direction in directions:
            direction.deliver()
        for source in ready:
            by_source[source].take()


def main(a: str, b: str, delay_ms: str, loss: str, rate_mbit: str) -> None:
    (holder_a, *addresses_a), (holder_b, *addresses_b) = a.split("/"), b.split("/")
    first = open_device(holder_a, addresses_b, float(loss))
    second = open_device(holder_b, addresses_a, float(loss))
    line = (float(delay_ms) / 1e3, float(loss), float(rate_mbit) * 1e6 / 8)
    print("up", flush=True)
    carry([Direction(first, second, *line), Direction(second, first, *line)])
