"""A part of what takes long, another one every day in CI: K/N is every Nth, from the Kth.

Floor: tests.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class Part:
    index: int = 0
    count: int = 1

    def of(self, items: Sequence[Item]) -> Sequence[Item]:
        return items[self.index :: self.count]

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def part(text: str) -> Part:
    """For argparse."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    made = Part(*map(int, match.groups())) if match else Part(1, 0)
    if made.index >= made.count:
        raise argparse.ArgumentTypeError(f"{text!r} is no part; give K/N with K below N, as 0/3")
    return made
