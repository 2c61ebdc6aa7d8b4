"""A bug to plant: one line of a file, altered."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    line: str  # without the spaces before it
    altered: str
