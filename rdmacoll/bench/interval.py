"""How sure a median is. Pure."""

import math

CONFIDENCE = 0.95


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
