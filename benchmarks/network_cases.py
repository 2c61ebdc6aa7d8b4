"""What benchmarks/network.py measures, what each time is read beside, and the marks.

Shared by the command and the ranks. Pure.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

KIB, MIB = 1 << 10, 1 << 20
OURS, GLOO, RAW = "ours", "gloo", "raw TCP"


@dataclass(frozen=True)
class Case:
    """`operation` is all_reduce, ping_pong, or one_way: `messages` there, then one byte back.

    The figure is the time of `beside` over ours, or ours over it where `inverse`; of a constant of
    so many microseconds where `beside_us` says one.
    """

    operation: str
    bytes: int
    beside: str
    mark: float
    aim: float | None = None
    inverse: bool = False
    beside_us: float = 0.0
    messages: int = 1

    @property
    def systems(self) -> list[str]:
        """Who takes turns."""
        return [OURS] if self.beside_us else [OURS, self.beside]

    def meets(self, figure: float, limit: float) -> bool:
        return figure <= limit if self.inverse else figure >= limit


@dataclass(frozen=True)
class Part:
    """Cases that share hosts, ranks and a line between the hosts; without delay and rate the hosts
    are on one switch."""

    title: str
    cases: tuple[Case, ...]
    ranks_per_host: int = 1
    idle: bool = False  # all ranks but the first and the last
    delay_ms: float = 0.0
    rate_mbit: float = 0.0
    most_rounds: int = 1000


@dataclass(frozen=True)
class Order:
    """What the ranks of a host are told."""

    cases: list[Case]
    backend: str
    rounds: int
    ranks_per_host: int
    idle: bool
    hosts: int
    host: int
    raw_tcp: str  # the program

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def of(fields: dict[str, Any]) -> Order:
        return Order(**fields | {"cases": [Case(**case) for case in fields["cases"]]})


def all_reduce(size: int, mark: float, aim: float) -> Case:
    return Case("all_reduce", size, GLOO, mark, aim)


LATE_MS = 5.0
RATE_MBIT = 1000.0
LARGE = 64 * MIB
LARGE_ON_THE_LINE_US = LARGE * 8 / RATE_MBIT
ON_THE_LINE = ("the line", 0.9)

PARTS = {
    "all_reduce": Part(
        "all_reduce, 2 hosts on a switch",
        (
            all_reduce(4, 10, 13),
            all_reduce(4 * KIB, 15, 25),
            all_reduce(64 * KIB, 6, 10),
            all_reduce(MIB, 2, 2.8),
            all_reduce(16 * MIB, 1, 1.4),
            all_reduce(64 * MIB, 1, 1.5),
        ),
    ),
    "rails": Part(
        "all_reduce, 2 hosts of 4 ranks on a switch",
        (
            all_reduce(4 * KIB, 10, 20),
            all_reduce(64 * KIB, 10, 20),
            all_reduce(MIB, 5, 8),
            all_reduce(16 * MIB, 2, 3),
            all_reduce(64 * MIB, 1.6, 2),
        ),
        ranks_per_host=4,
    ),
    "messages": Part(
        "send and recv, 2 hosts on a switch",
        (
            Case("ping_pong", 8, RAW, 1.5, inverse=True),
            Case("one_way", MIB, RAW, 0.85, messages=16),
            Case("one_way", 16 * MIB, RAW, 0.85, messages=2),
        ),
    ),
    "late": Part(
        f"{LATE_MS:g} ms each way",
        (
            Case("all_reduce", 4, "latencies", 1.3, inverse=True, beside_us=LATE_MS * 1e3),
            Case("all_reduce", 4, GLOO, 2),
        ),
        delay_ms=LATE_MS,
    ),
    "line": Part(
        f"{RATE_MBIT:g} Mbit/s, {2 * LATE_MS:g} ms there and back",
        (
            Case("all_reduce", LARGE, *ON_THE_LINE, beside_us=LARGE_ON_THE_LINE_US),
            Case("one_way", LARGE, *ON_THE_LINE, beside_us=LARGE_ON_THE_LINE_US),
            Case("one_way", LARGE, RAW, 0.9),
        ),
        delay_ms=LATE_MS,
        rate_mbit=RATE_MBIT,
        most_rounds=5,
    ),
    "world64": Part(
        "the same line in a world of 64 ranks, 62 of them idle",
        (Case("one_way", LARGE, *ON_THE_LINE, beside_us=LARGE_ON_THE_LINE_US),),
        ranks_per_host=32,
        idle=True,
        delay_ms=LATE_MS,
        rate_mbit=RATE_MBIT,
        most_rounds=5,
    ),
}
