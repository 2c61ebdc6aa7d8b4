"""Ranks as people read them. Pure."""

from collections.abc import Iterable


def ranks_text(ranks: Iterable[int]) -> str:
    """ "ranks 0-3, 7"."""
    ordered = sorted(set(ranks))
    runs: list[list[int]] = []
    for rank in ordered:
        if runs and runs[-1][1] == rank - 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    parts = (str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in runs)
    return ("rank " if len(ordered) == 1 else "ranks ") + ", ".join(parts)
