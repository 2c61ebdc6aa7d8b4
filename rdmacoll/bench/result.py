"""The result of a run as plain data: what --json writes, and table.py and plot.py show."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Times:
    """One system's on one operation and size. The slowest rank's, where nothing else is said."""

    p50_us: float  # of each turn's calls, then of the turns
    p99_us: float  # of the calls of all turns
    root_p50_us: float  # rank 0's, the root of those operations that have one
    algbw_gb_per_s: float
    busbw_gb_per_s: float
    times_slower: float  # than the first system: the median of the rounds' ratios
    turns_us: list[float]  # of each round's turn: those of one round met the same machine


@dataclass(frozen=True)
class Row:
    operation: str
    bytes: int
    systems: dict[str, Times]


@dataclass(frozen=True)
class Machine:
    """What the times are to be read beside, measured in the same run."""

    cores: int
    copy_gb_per_s: float  # per rank, while all copy at once
    flag_us: float | None  # one way between two cores; None without a C++ compiler
    torch_call_us: float  # an all_reduce on a backend that does nothing


@dataclass(frozen=True)
class Result:
    ranks: int
    dtype: str
    reduction: str
    in_place: bool
    memory: str
    checked: bool
    versions: dict[str, str]
    machine: Machine
    rows: list[Row]

    @property
    def what(self) -> str:
        """For people."""
        where = ", in place" if self.in_place else ""
        where += ", in the heap" if self.memory == "heap" else ""
        return f"{self.dtype}, {self.reduction}{where}" + ("" if self.checked else ", not checked")

    def as_data(self) -> dict[str, Any]:
        return asdict(self)
