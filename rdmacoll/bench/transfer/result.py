"""The result of a run as plain data: what --json writes, and table.py shows."""

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from ..frame.interval import Ratio, ratio_of
from .measure import Turns


@dataclass(frozen=True)
class Measured:
    """One way on one size."""

    us: float  # per transfer: the median of each turn's, then of the turns
    cpu_us: float  # of both processes, per transfer
    cpu_s_per_gb: float
    slower: Ratio
    cpu: Ratio
    form: str
    transfers: int
    counted: dict[str, int]  # in all turns of both processes; empty: nothing is counted
    turns_us: list[float]


@dataclass(frozen=True)
class Row:
    bytes: int
    ways: dict[str, Measured]


@dataclass(frozen=True)
class Result:
    cores: int
    load: tuple[float, float, float]  # of the last 1, 5 and 15 minutes, as the run began
    flag_us: float | None  # one way between two cores; None without a C++ compiler
    rounds: int
    versions: dict[str, str]
    rows: list[Row]

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def row_of(size_bytes: int, ways: list[str], turns: list[Turns]) -> Row:
    """From what all processes have measured: of each way first the sender's, then the receiver's.
    The first way is the one that the others are compared with."""
    pairs = list(zip(turns[::2], turns[1::2], strict=True))
    cpu_us = [_sums(sender.cpu_us, receiver.cpu_us) for sender, receiver in pairs]
    measured = {}
    for name, (sender, receiver), cpu in zip(ways, pairs, cpu_us, strict=True):
        counted = {what: count + receiver.counted[what] for what, count in sender.counted.items()}
        measured[name] = Measured(
            us=statistics.median(sender.sends_us),
            cpu_us=statistics.median(cpu),
            cpu_s_per_gb=statistics.median(cpu) / size_bytes * 1e3,
            slower=ratio_of(sender.sends_us, pairs[0][0].sends_us),
            cpu=ratio_of(cpu, cpu_us[0]),
            form=sender.form,
            transfers=len(sender.sends_us) * (1 + sender.sends),
            counted=counted,
            turns_us=sender.sends_us,
        )
    return Row(size_bytes, measured)


def _sums(some: list[float], others: list[float]) -> list[float]:
    return [one + other for one, other in zip(some, others, strict=True)]
