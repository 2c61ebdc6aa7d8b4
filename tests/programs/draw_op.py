"""Draws one operation: kind, sizes, types, layouts, and how each member calls it and waits."""

from __future__ import annotations

import dataclasses
import math
import random

import sizes
from memory import EXPANDED, INPUT_LAYOUTS, MEMORIES, OUTPUT_LAYOUTS
from program import (
    BITWISE,
    COMPLEX,
    FLOATS,
    IN_PLACE,
    MOVABLE,
    PREMUL,
    REDUCIBLE,
    REDUCING,
    REDUCTIONS,
    SIGNED,
    UNSIGNED,
    Group,
    Message,
    Op,
    Part,
)
from waits import WAITS

WEIGHTS = {
    "broadcast": 8,
    "all_reduce": 16,
    "slices": 2,
    "reduce": 8,
    "all_gather": 7,
    "all_gather_into_tensor": 7,
    "gather": 5,
    "scatter": 5,
    "reduce_scatter": 6,
    "reduce_scatter_tensor": 6,
    "all_to_all": 6,
    "all_to_all_single": 7,
    "barrier": 3,
    "all_reduce_coalesced": 2,
    "all_gather_coalesced": 2,
    "all_gather_into_tensor_coalesced": 2,
    "reduce_scatter_tensor_coalesced": 2,
    "manager_all_reduce": 1,
    "manager_all_gather": 1,
    "manager_reduce_scatter": 1,
    "exchange": 10,
    "message": 6,
    "any_source": 3,
    # The rest has blocking calls only.
    "sparse": 1,
    "misfit": 0.5,
    "monitored_barrier": 0.5,
    "all_gather_object": 0.5,
    "gather_object": 0.5,
    "broadcast_object_list": 0.5,
    "scatter_object_list": 0.5,
    "send_object": 0.5,
}
BLOCKING = list(WEIGHTS)[list(WEIGHTS).index("sparse") :]
MESSAGES = ("exchange", "message", "any_source", "misfit", "send_object")
BETWEEN_RANKS = MESSAGES[1:]  # in an exchange a rank may send to itself
UNEVEN = ("all_gather", "gather", "scatter", "reduce_scatter")
OF_ONE_SIZE = ("gather", "scatter")  # all the same; torch wants it so
ONE_INPUT = ("all_gather", "all_gather_into_tensor", "gather")
OF_SEVERAL = [
    kind
    for kind in WEIGHTS
    if kind == "slices" or "coalesced" in kind or kind.startswith("manager_")
]
STACKED = ("all_gather", "gather", "all_to_all", "all_gather_coalesced")
ALIASED = (
    "all_gather_coalesced",
    *UNEVEN,
    "all_gather_into_tensor",
    "reduce_scatter_tensor",
    "all_to_all",
    "all_to_all_single",
)
DROPPED = ("all_reduce", "broadcast", "all_gather", "reduce_scatter_tensor", "all_to_all_single")
OF_GLOO = ("broadcast", "all_reduce", "reduce", "all_gather", "all_gather_into_tensor", "scatter")
GLOO_TYPES = ("float64", "float32", "float16", "int64", "int32", "int8", "uint8")

_IN_FLIGHT_BYTES = 64 << 10  # of one tensor of many in flight


class Drawer:
    def __init__(self, rng: random.Random, budget_bytes: int, huge: bool) -> None:
        self._rng = rng
        self._left_bytes = budget_bytes
        self._most_bytes = (24 if huge else 2) << 20
        self._drawn = 0

    def any_kind(self, group: Group) -> Op:
        return self._op(group, self._kind(group, list(WEIGHTS)), blocks=0.5)

    def in_flight(self, group: Group) -> Op:
        kinds = [kind for kind in WEIGHTS if kind not in BLOCKING]
        return self._op(group, self._kind(group, kinds), blocks=0.0, most_bytes=_IN_FLIGHT_BYTES)

    def in_thread(self, group: Group) -> Op:
        op = self.any_kind(group)
        parts = [
            p if p.memory != "registered" else dataclasses.replace(p, memory="heap")
            for p in op.parts
        ]
        return dataclasses.replace(op, parts=tuple(parts), gloo=False)

    def of_one_input(self, group: Group, count: int) -> list[Op]:
        """Several operations that read the same tensor at once."""
        rng = self._rng
        first = self._op(group, rng.choice(ONE_INPUT), blocks=0.0, even=True)
        ops = []
        for _ in range(count):
            kind = rng.choice(ONE_INPUT)
            each = first.counts[0]
            several = kind in UNEVEN
            parts = tuple(
                dataclasses.replace(part, mode=rng.choice(list(WAITS)), forget=False)
                for part in first.parts
            )
            ops.append(
                dataclasses.replace(
                    first,
                    number=self._number(),
                    kind=kind,
                    counts=(each,) * group.size if several else (each,),
                    root=rng.randrange(group.size),
                    alias="",
                    shared=True,
                    gloo=False,
                    parts=parts,
                )
            )
        return ops

    # --- the pieces -------------------------------------------------------------------------------

    def _number(self) -> int:
        self._drawn += 1
        return self._drawn

    def _kind(self, group: Group, kinds: list[str]) -> str:
        able = [kind for kind in kinds if group.size > 1 or kind not in BETWEEN_RANKS]
        return self._rng.choices(able, [WEIGHTS[kind] for kind in able])[0]

    def _op(
        self, group: Group, kind: str, blocks: float, most_bytes: int = 1 << 30, even: bool = False
    ) -> Op:
        rng = self._rng
        reduce = rng.choice(REDUCTIONS) if kind in REDUCING else ""
        op = Op(
            number=self._number(),
            group=group,
            kind="exchange" if kind == "message" else kind,
            reduce=reduce,
            dtype=rng.choice(_types(kind, reduce)),
            root=rng.randrange(group.size),
            data=rng.randrange(1 << 40),
            dims=rng.choice((0, 1, 1, 1, 2, 2, 4)),
        )
        if reduce and _may_overflow(op):
            op = dataclasses.replace(op, wide=rng.random() < 0.3)
        op = self._sized(op, kind, min(most_bytes, self._most_bytes), even)
        op = dataclasses.replace(op, parts=self._parts(op, blocks))
        if kind in ALIASED and rng.random() < 0.25:
            op = self._aliased(op)
        if group.gloo and blocks and _gloo_has(op):
            op = dataclasses.replace(op, gloo=True)
        return op

    def _count(self, op: Op, most_bytes: int, tensors: int) -> int:
        """The elements of one tensor, of so many that share the budget."""
        itemsize = op.torch_dtype.itemsize
        most = max(min(most_bytes, self._left_bytes) // max(tensors, 1), 64)
        drawn = sizes.count(self._rng, itemsize, most)
        self._left_bytes -= drawn * itemsize * tensors
        return drawn

    def _sized(self, op: Op, kind: str, most_bytes: int, even: bool) -> Op:
        rng, size = self._rng, op.group.size
        if kind in MESSAGES:
            return dataclasses.replace(op, messages=self._messages(op, kind, most_bytes))
        if kind in ("all_to_all", "all_to_all_single"):
            return self._sized_matrix(op, most_bytes)
        if kind == "sparse":
            entries = tuple(rng.randint(0, 9) for _ in range(size))
            return dataclasses.replace(op, counts=entries, dtype=rng.choice(("float32", "int64")))
        if kind in OF_SEVERAL:
            several = 12 if kind == "all_reduce_coalesced" else 4
            tensors = rng.randint(1, several)
            drawn = [self._count(op, most_bytes, tensors * size) for _ in range(tensors)]
            if kind.startswith("manager_"):  # torch takes no empty ones there
                drawn = [max(count, 1) for count in drawn]
            return dataclasses.replace(op, counts=tuple(drawn))
        count = self._count(op, most_bytes, size * size)
        if kind not in UNEVEN:
            return dataclasses.replace(op, counts=(count,))
        if even or kind in OF_ONE_SIZE or rng.random() < 0.5:
            return dataclasses.replace(op, counts=(count,) * size)
        uneven = [rng.choice((count, rng.randint(0, count), sizes.small(rng))) for _ in range(size)]
        return dataclasses.replace(op, counts=tuple(uneven))

    def _sized_matrix(self, op: Op, most_bytes: int) -> Op:
        """Here `wide` says that the call leaves the splits out."""
        rng, size = self._rng, op.group.size
        count = self._count(op, most_bytes, size * size)
        width = rng.choice((1, 1, 2, 3, 7)) if op.kind == "all_to_all_single" else 1
        rows = math.ceil(count / width)
        if rng.random() < 0.5:
            even = ((rows,) * size,) * size
            return dataclasses.replace(op, matrix=even, width=width, wide=True)
        matrix = tuple(
            tuple(rng.choice((rows, rng.randint(0, rows), sizes.small(rng))) for _ in range(size))
            for _ in range(size)
        )
        return dataclasses.replace(op, matrix=matrix, width=width, wide=False)

    def _messages(self, op: Op, kind: str, most_bytes: int) -> tuple[Message, ...]:
        rng, size = self._rng, op.group.size
        if kind == "any_source":
            to, count = rng.randrange(size), self._count(op, most_bytes, size)
            senders = [
                rng.choice([r for r in range(size) if r != to]) for _ in range(rng.randint(1, 6))
            ]
            return tuple(Message(source, to, 1000 + op.number, count) for source in senders)
        many = rng.randint(1, 10) if kind == "exchange" else 1
        made = []
        for _ in range(many):
            source = to = rng.randrange(size)
            if kind != "exchange" or (size > 1 and rng.random() < 0.85):
                to = rng.choice([rank for rank in range(size) if rank != source])
            count = self._count(op, most_bytes, many)
            made.append(Message(source, to, rng.choice((0, 0, 1, 7)), count))
        return tuple(made)

    def _parts(self, op: Op, blocks: float) -> tuple[Part, ...]:
        """Members may differ in how they call, where their tensors lie, and how they wait."""
        rng = self._rng
        alike = self._part(op, blocks)
        if rng.random() < 0.4:
            return (alike,) * op.group.size
        return tuple(self._part(op, blocks) for _ in range(op.group.size))

    def _part(self, op: Op, blocks: float) -> Part:
        rng = self._rng
        modes = [*WAITS, *["drop"] * (op.kind in DROPPED)]
        mode = "block" if rng.random() < blocks else rng.choice(modes)
        plain = rng.random() < 0.5
        inputs = [layout for layout in INPUT_LAYOUTS if op.width == 1 or layout not in EXPANDED]
        return Part(
            mode=mode,
            after=0 if mode == "block" else rng.choice((0, 0, 0, 1, 2, 5)),
            memory=rng.choices(MEMORIES, (5, 3, 1, 1))[0],
            layout_in="flat" if plain else rng.choice(inputs),
            layout_out="flat" if plain else rng.choice(OUTPUT_LAYOUTS),
            forget=rng.random() < 0.3,
            reset=rng.random() < 0.05,
            late_ms=rng.choice((0.1, 1.0, 5.0, 20.0)) if rng.random() < 0.02 else 0.0,
        )

    def _aliased(self, op: Op) -> Op:
        even = op.wide if op.matrix else len(set(op.counts)) == 1
        ways = ["stacked"] * (op.kind in STACKED)
        if op.kind not in OF_SEVERAL and (even or not op.matrix):
            ways += ["own"] + ["elsewhere"] * even
        parts = tuple(
            dataclasses.replace(part, layout_in="flat", layout_out="flat", forget=False)
            for part in op.parts
        )
        if not ways:
            return op
        return dataclasses.replace(op, alias=self._rng.choice(ways), dims=1, parts=parts)


def _types(kind: str, reduce: str) -> tuple[str, ...]:
    if kind not in REDUCING:
        return MOVABLE
    integers = (*SIGNED, *UNSIGNED)
    if reduce == "AVG":
        return (*FLOATS, *COMPLEX, *integers)
    if reduce == PREMUL:
        return FLOATS
    if reduce in ("MIN", "MAX"):
        return (*FLOATS, *integers, "bool")
    if reduce in BITWISE:
        return (*integers, "bool")
    # torch itself refuses the product of complex numbers in all_reduce.
    alone = kind in ("reduce", "reduce_scatter", "reduce_scatter_tensor")
    return REDUCIBLE if reduce == "SUM" or alone else (*FLOATS, *integers, "bool")


def _may_overflow(op: Op) -> bool:
    """The quotient of a sum that has left int64 is not computed here."""
    return op.dtype in (*SIGNED, *UNSIGNED) and (op.reduce, op.dtype) != ("AVG", "uint64")


def _gloo_has(op: Op) -> bool:
    counts = op.counts
    return (
        op.kind in OF_GLOO
        and op.dtype in GLOO_TYPES
        and op.reduce not in ("AVG", PREMUL)
        and not op.alias
        and len(set(counts)) == 1
        and min(counts) > 0
        and (op.kind in IN_PLACE or not any(p.layout_in in EXPANDED for p in op.parts))
    )
