"""The table of what is published under a name: which tensors, and which rank has which part."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass

from ..memory.errors import PeerError
from ..memory.kind import Kind, decode
from ..memory.layout import Layout
from .parts import Part, make_up


@dataclass(frozen=True)
class Whole:
    """A tensor, and what lies where."""

    kind: Kind
    parts: dict[int, Part]  # by owner


@dataclass(frozen=True)
class Told:
    """What a rank tells the others that it has, before all publish it."""

    rank: int
    address: bytes
    tensors: dict[str, tuple[Kind, Part]]  # kinds of the whole


class Table:
    def __init__(self, owners: list[tuple[int, bytes]], tensors: dict[str, Whole]) -> None:
        self.owners = owners  # rank and address
        self.tensors = tensors

    @staticmethod
    def of(told: Sequence[Told]) -> Table:
        """What several ranks have is published by the first of them.

        Raises ValueError for ranks whose tensors do not belong together.
        """
        first = told[0]
        tensors = {name: Whole(kind, {}) for name, (kind, _) in first.tensors.items()}
        for owner, its in enumerate(told):
            if set(its.tensors) != set(tensors):
                different = sorted(set(its.tensors) ^ set(tensors))
                raise ValueError(
                    f"state has other names on rank {its.rank} than on rank {first.rank}: "
                    f"{different[:5]}"
                )
            for name, (kind, part) in its.tensors.items():
                whole = tensors[name]
                if kind != whole.kind:
                    raise ValueError(
                        f"state[{name!r}] is {kind} on rank {its.rank} and {whole.kind} on rank "
                        f"{first.rank}"
                    )
                if part.elements and part not in whole.parts.values():
                    whole.parts[owner] = part
        for name, whole in tensors.items():
            if not make_up(list(whole.parts.values()), whole.kind.shape):
                raise ValueError(
                    f"state[{name!r}] is {whole.kind}, which is not made up by what its ranks "
                    f"have, {list(whole.parts.values())}; it has to be sharded over one mesh on "
                    "all of them"
                )
        return Table([(its.rank, its.address) for its in told], tensors)

    def layout_of(self, owner: int) -> Layout[str]:
        """In a version, as this owner has it."""
        return Layout(
            {
                name: Kind(whole.kind.dtype, whole.parts[owner].sizes)
                for name, whole in self.tensors.items()
                if owner in whole.parts
            }
        )

    def needed(self) -> list[int]:
        """The owners of all parts; the first, if there are none."""
        return sorted({owner for whole in self.tensors.values() for owner in whole.parts}) or [0]

    def encode(self) -> bytes:
        owners = [[rank, base64.b64encode(address).decode()] for rank, address in self.owners]
        tensors = [
            [
                name,
                whole.kind.encode(),
                [[owner, part.offsets, part.sizes] for owner, part in whole.parts.items()],
            ]
            for name, whole in self.tensors.items()
        ]
        return json.dumps([owners, tensors]).encode()

    @staticmethod
    def decode(text: bytes, who: str) -> Table:
        """PeerError for what encode() has not made. It comes from another process."""
        try:
            owners, tensors = json.loads(text)
            table = Table(
                [(_count(rank), base64.b64decode(address)) for rank, address in owners],
                {
                    str(name): Whole(
                        decode(kind.encode(), None, who),
                        {
                            _count(owner): Part(
                                tuple(map(_count, offsets)), tuple(map(_count, sizes))
                            )
                            for owner, offsets, sizes in parts
                        },
                    )
                    for name, kind, parts in tensors
                },
            )
            right = len(table.owners) > 0 and all(
                make_up(list(whole.parts.values()), whole.kind.shape)
                and all(owner < len(table.owners) for owner in whole.parts)
                for whole in table.tensors.values()
            )
        except (ValueError, TypeError, AttributeError, RecursionError):
            right = False
        if not right:
            raise PeerError(f"{who} publishes a table that makes no sense")
        return table


def table_name(name: str) -> str:
    """Under which the table is exposed."""
    return name + ":table"


def _count(number: object) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} counts nothing")
    return number
