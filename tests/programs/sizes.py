"""Draws sizes: mostly small ones, and often such at which the engine takes another way."""

from __future__ import annotations

import random

KIB = 1024
MIB = 1024 * KIB

# In bytes: the limits of inline data, envelopes, the smallest slot, the slots of short messages,
# one-shot, the slots of groups of two and more, lingering callers, tiles and stages.
EDGES = (24, 44, 64, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB)
LARGE_EDGES = (256 * KIB, 512 * KIB, 1 * MIB, 2 * MIB)
HUGE_EDGES = (4 * MIB, 8 * MIB)
PRIMES = (2, 3, 5, 7, 11, 13, 17, 31, 61, 127, 251, 509, 1021, 2039, 4093, 8191)


def count(rng: random.Random, itemsize: int, budget_bytes: int) -> int:
    """The elements of one tensor, of at most so many bytes."""
    kind = rng.random()
    if kind < 0.12:
        drawn = rng.choice((0, 1, 1, 2))
    elif kind < 0.50:
        drawn = rng.randint(1, 40)
    elif kind < 0.70:
        drawn = rng.choice(PRIMES)
    elif kind < 0.80:
        drawn = rng.randint(1, 5000)
    else:
        edges = EDGES if kind < 0.985 else LARGE_EDGES if kind < 0.999 else HUGE_EDGES
        drawn = max(0, rng.choice(edges) // itemsize + rng.choice((-1, 0, 0, 1, 1, 7)))
    return min(drawn, max(budget_bytes // itemsize, 1))


def small(rng: random.Random) -> int:
    return rng.choice((0, 1, 2, 3, 5, 8, 11, 12, 17, 31, 60))
