"""How sure a median is. Pure."""

import math
import statistics
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """In ours: the median of the rounds' ratios, and between which values it lies."""

    median: float
    low: float
    high: float

    @property
    def between(self) -> str:
        """For people."""
        return f"[{self.low:.3g}, {self.high:.3g}]"


def ratio_of(theirs: list[float], ours: list[float]) -> Ratio:
    """What stands at the same place of the two lists is of the same round."""
    ratios = [one / other for one, other in zip(theirs, ours, strict=True)]
    return Ratio(statistics.median(ratios), *interval(ratios))


def interval(values: list[float]) -> tuple[float, float]:
    """Around the median: between two of the sorted values, so that less than 1 - CONFIDENCE of all
    drawings have it outside. The widest there is where there are few values."""
    count = len(values)
    outside, below = 0.0, 0
    for fewer in range(count // 2):
        outside += 2 * math.comb(count, fewer) / 2**count
        if outside > 1 - CONFIDENCE:
            break
        below = fewer
    ordered = sorted(values)
    return ordered[below], ordered[count - 1 - below]
