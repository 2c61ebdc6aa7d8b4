"""Which rank is on which host, as `--hosts` says it: 2x2 is two ranks on each of two hosts, 3+1
three on the first and one on the second.

Floor: tests.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass

from hosts.stand import Host


@dataclass(frozen=True)
class Layout:
    ranks: tuple[int, ...]  # of each host

    @property
    def world(self) -> int:
        return sum(self.ranks)

    def host_of(self, rank: int) -> int:
        return next(h for h in range(len(self.ranks)) if rank < sum(self.ranks[: h + 1]))

    def slots(self, hosts: list[Host]) -> str:
        """As rdmarun's -H wants it."""
        return ",".join(f"{host.name}:{n}" for host, n in zip(hosts, self.ranks, strict=True))


def layout(text: str) -> Layout:
    """For argparse."""
    if match := re.fullmatch(r"([1-9])x([1-9])", text):
        return Layout((int(match[2]),) * int(match[1]))
    if re.fullmatch(r"[1-9](\+[1-9])+", text):
        return Layout(tuple(map(int, text.split("+"))))
    raise argparse.ArgumentTypeError(f"{text!r} is no layout; give HOSTSxRANKS, or as 3+1")
