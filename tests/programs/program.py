"""A program as data: groups, operations on them, who waits when and how, where tensors lie.

Every rank draws the whole program (draw.py) and runs its part of it (rank.py), so that it knows
what the others do without being told. Not here: chances, and anything that runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

WORLD_GROUP = 0  # the number of the default group

FLOATS = ("float64", "float32", "float16", "bfloat16")
SIGNED = ("int64", "int32", "int16", "int8")
UNSIGNED = ("uint64", "uint32", "uint16", "uint8")
COMPLEX = ("complex64", "complex128")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
REDUCIBLE = (*FLOATS, *SIGNED, *UNSIGNED, "bool", *COMPLEX)
MOVABLE = (*REDUCIBLE, *FLOAT8)

BITWISE = ("BAND", "BOR", "BXOR")
PREMUL = "PREMUL_SUM"
PREMUL_FACTOR = 0.5
REDUCTIONS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", *BITWISE, PREMUL)

# One tensor that is input and output.
IN_PLACE = (
    "broadcast",
    "all_reduce",
    "slices",  # of one tensor, an all_reduce of each
    "reduce",
    "all_reduce_coalesced",
    "manager_all_reduce",
)
REDUCING = (
    "all_reduce",
    "slices",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_reduce_coalesced",
    "manager_all_reduce",
    "reduce_scatter_tensor_coalesced",
    "manager_reduce_scatter",
)


@dataclass(frozen=True)
class Group:
    number: int
    ranks: tuple[int, ...]  # of the world, ascending
    algorithm: str = ""  # its own, by pg_options
    gloo: bool = False  # whether it has a twin of gloo's

    @property
    def size(self) -> int:
        return len(self.ranks)


@dataclass(frozen=True)
class Part:
    """What one member does in an operation."""

    mode: str = "block"  # or one of waits.py's, or "drop": nobody waits or sees the result
    after: int = 0  # so many steps later it waits
    memory: str = "ordinary"  # memory.py's
    layout_in: str = "flat"  # likewise
    layout_out: str = "flat"
    forget: bool = False  # drops its inputs while the operation is in flight
    reset: bool = False  # gives its output tensors other memory; the result goes to the first
    late_ms: float = 0.0  # sleeps for so long before the call


@dataclass(frozen=True)
class Message:
    """Ranks of the group."""

    source: int
    destination: int
    tag: int
    count: int


Counts = tuple[int, ...]


@dataclass(frozen=True)
class Op:
    """`counts`: the elements of the one tensor, or of each rank's, or of each of several tensors.
    `matrix`, of an all_to_all: the rows that each rank sends to each."""

    number: int
    group: Group
    kind: str
    dtype: str = "float32"
    reduce: str = ""
    counts: Counts = ()
    matrix: tuple[Counts, ...] = ()
    messages: tuple[Message, ...] = ()
    width: int = 1  # elements of a row
    root: int = 0
    data: int = 0  # the seed of its inputs
    wide: bool = False  # integers that overflow
    dims: int = 1
    alias: str = ""  # own, elsewhere: where input and output lie in one another
    shared: bool = False  # its input is that of other operations, too
    gloo: bool = False  # whether the twin of its group runs it, too
    parts: tuple[Part, ...] = ()

    @property
    def torch_dtype(self) -> torch.dtype:
        dtype: torch.dtype = getattr(torch, self.dtype)
        return dtype

    def inputs(self, me: int) -> Counts:
        """The elements of each tensor that `me` contributes."""
        size, counts = self.group.size, self.counts
        match self.kind:
            case "barrier":
                return ()
            case "all_gather" | "gather":
                return (counts[me],)
            case "scatter":
                return counts if me == self.root else ()
            case (
                "reduce_scatter_tensor"
                | "reduce_scatter_tensor_coalesced"
                | "manager_reduce_scatter"
            ):
                return tuple(count * size for count in counts)
            case "all_to_all":
                return self.matrix[me]
            case "all_to_all_single":
                return (sum(self.matrix[me]) * self.width,)
        return counts

    def outputs(self, me: int) -> Counts:
        size, counts = self.group.size, self.counts
        match self.kind:
            case "barrier":
                return ()
            case "gather":
                return counts if me == self.root else ()
            case "scatter" | "reduce_scatter":
                return (counts[me],)
            case (
                "all_gather_into_tensor" | "all_gather_into_tensor_coalesced" | "manager_all_gather"
            ):
                return tuple(count * size for count in counts)
            case "all_gather_coalesced":
                return counts * size
            case "all_to_all":
                return self.column(me)
            case "all_to_all_single":
                return (sum(self.column(me)) * self.width,)
        return counts

    def column(self, me: int) -> Counts:
        return tuple(row[me] for row in self.matrix)

    def shape(self, count: int) -> tuple[int, ...]:
        """The same for equal counts."""
        if self.kind == "all_to_all_single":
            return (count // self.width, self.width) if self.width > 1 else (count,)
        if self.dims == 0 and count == 1:
            return ()
        shape = []
        for _ in range(self.dims - 1):
            factor = next((f for f in (2, 3, 5, 7) if count and count % f == 0), 1)
            shape.append(factor)
            count //= factor
        return (*shape, count)

    def __str__(self) -> str:
        said = [f"#{self.number}", self.kind, f"in group {self.group.ranks}", self.dtype]
        said += [self.reduce] * bool(self.reduce)
        said += [f"{name}={getattr(self, name)}" for name in ("counts", "matrix", "messages")]
        said += [f"root={self.root} dims={self.dims} alias={self.alias!r} shared={self.shared}"]
        return " ".join(word for word in said if not word.endswith("=()"))


@dataclass(frozen=True)
class Make:
    """All ranks make the group. None is made by use_local_synchronization: torch names such a group
    by how many the rank is in, so members that are in different other groups would never meet."""

    group: Group


@dataclass(frozen=True)
class Destroy:
    group: Group


@dataclass(frozen=True)
class Renew:
    """The default group is destroyed, and all others with it, and made again. A program's first or
    last step."""


@dataclass(frozen=True)
class Burst:
    """Operations one after another. Where shuffled, none blocks, and each rank has its own order of
    those in different groups."""

    ops: tuple[Op, ...]
    shuffled: bool = False


@dataclass(frozen=True)
class Threads:
    """A thread for each lane, each in a group of its own."""

    lanes: tuple[tuple[Op, ...], ...]


@dataclass(frozen=True)
class Refuse:
    """A call that raises before anything moves, on the members named."""

    group: Group
    what: str  # refusals.py's
    members: tuple[int, ...]


@dataclass(frozen=True)
class Mismatch:
    """Ranks call different things in a group that is thrown away."""

    group: Group
    what: str


Step = Make | Destroy | Renew | Burst | Threads | Refuse | Mismatch


@dataclass(frozen=True)
class Program:
    seed: int
    number: int
    world: int
    steps: tuple[Step, ...] = field(repr=False)
    traced: tuple[int, ...] = ()  # ranks whose tensors the backend moves into the heap by itself

    def __str__(self) -> str:
        return f"seed={self.seed} program={self.number} world={self.world}"

    def operations(self) -> list[Op]:
        lists: list[tuple[Op, ...]] = []
        for step in self.steps:
            if isinstance(step, Burst):
                lists.append(step.ops)
            if isinstance(step, Threads):
                lists += step.lanes
        return [op for ops in lists for op in ops]
