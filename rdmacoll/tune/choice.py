"""From measured times to rows of the table: few rows, and little time lost by them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

# A change of algorithm must save as much as this share of one operation's time, summed over the
# measured sizes: noise saves less, and each row is one more for people to read.
ROW_PRICE = 0.25
# So much must be saved at each size where the default is left: some algorithms are the same for few
# ranks, and a table should not say more than it knows.
LEAVING_PRICE = 0.03


@dataclass(frozen=True)
class Measured:
    """One collective: what each algorithm takes at each size, and which one is the default."""

    collective: str
    sizes_bytes: list[int]  # ascending
    times_us: dict[str, list[float]]  # by algorithm, then by size
    defaults: list[str]  # by size


@dataclass(frozen=True)
class Row:
    up_to_bytes: int | None  # None: any
    algorithm: str


def best_algorithms(measured: Measured) -> list[str]:
    """Which one to take at each size: of all ways, the one with the least loss and price.

    The loss at a size is relative to the quickest there. `ways` holds, for each algorithm that may
    be taken at the size at hand, the best way to get there and what it costs.
    """
    ways: dict[str, tuple[float, list[str]]] = {name: (0.0, []) for name in measured.times_us}
    for index, default in enumerate(measured.defaults):
        quickest = min(times_us[index] for times_us in measured.times_us.values())
        cheapest = min(ways.values(), key=lambda way: way[0])
        longer = {}
        for name, times_us in measured.times_us.items():
            cost, way = ways[name]
            if cheapest[0] + ROW_PRICE < cost:
                cost, way = cheapest[0] + ROW_PRICE, cheapest[1]
            cost += times_us[index] / quickest - 1 + LEAVING_PRICE * (name != default)
            longer[name] = (cost, [*way, name])
        ways = longer
    return min(ways.values(), key=lambda way: way[0])[1]


def rows_of(sizes_bytes: Sequence[int], algorithms: Sequence[str]) -> list[Row]:
    """A row holds up to the largest size that was measured to be its; the last one to any."""
    rows = []
    for index, algorithm in enumerate(algorithms):
        last = index + 1 == len(algorithms)
        if last or algorithms[index + 1] != algorithm:
            rows.append(Row(None if last else sizes_bytes[index], algorithm))
    return rows
