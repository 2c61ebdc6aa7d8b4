"""init to shutdown: which ranks there are, where they are, and what is made for them.

Floor: rdmacoll/horovod/names. Thread: any; init and shutdown one at a time.
"""

import os
import socket
import threading
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import torch

from rdmacoll._extension import extension

from . import timeline, variables
from .groups import Meeting
from .stalls import read_limits

if TYPE_CHECKING:
    from .native import NamedGroup
    from .process_sets import ProcessSet


class SetState:
    """A process set as this process takes part in it, or not."""

    def __init__(self, ranks: list[int], group: "NamedGroup | None", name: str) -> None:
        self.ranks = ranks
        self.group = group  # None: this rank is not in it
        self.name = name
        self._counts: dict[str, int] = {}
        self._gradients: Counter[str] = Counter()
        self._lock = threading.Lock()

    def next_name(self, kind: str) -> str:
        """For an operation without a name: ranks that submit alike come to the same."""
        with self._lock:
            number = self._counts[kind] = self._counts.get(kind, -1) + 1
        return f"{kind}.noname.{number}"

    def next_gradients(self, signature: str) -> str:
        """Of optimizers that are made alike, and used in the same order."""
        self._gradients[signature] += 1
        return f"{self.name}/gradients.{signature}.{self._gradients[signature]}"

    def count_anew(self) -> None:
        """Once all have joined, as some have submitted less before."""
        with self._lock:
            self._counts.clear()


class Closable(Protocol):
    """What has groups of its own."""

    def close(self) -> None: ...


@dataclass
class Place:
    """Where a rank is."""

    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int


@dataclass
class World:
    """What is there between init and shutdown."""

    meeting: Meeting
    ranks: list[int]  # of the job
    name: str
    sets: dict[int, SetState] = field(default_factory=dict)
    place: Place = field(default_factory=lambda: Place(0, 1, 0, 1))
    # What is closed with it, in the order in which it was made; what is gone is no more.
    closed_with_it: list[weakref.ref[Closable]] = field(default_factory=list)
    times: dict[str, int] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        return self.ranks.index(self.meeting.rank)

    @property
    def size(self) -> int:
        return len(self.ranks)

    def new_name(self, what: str) -> str:
        """That of a group that all its ranks make for the n-th time."""
        time = self.times[what] = self.times.get(what, -1) + 1
        return f"{self.name}/{what}/{time}"

    def make_set(self, ranks: list[int], name: str) -> SetState:
        """ranks: of this world."""
        group = None
        if self.rank in ranks:
            group = self.meeting.named_group(name, [self.ranks[rank] for rank in ranks])
        return SetState(ranks, group, name)

    def close(self) -> None:
        """Ends its groups, and what is in flight there."""
        for reference in self.closed_with_it:
            if (one := reference()) is not None:
                one.close()
        for state in reversed(self.sets.values()):
            if state.group is not None:
                state.group.close()
        timeline.end()


_world: World | None = None
_starts: Counter[str] = Counter()  # by meeting: all its ranks begin and end as often


def current() -> World:
    """Raises ValueError before init() and after shutdown()."""
    if _world is None:
        raise ValueError("Horovod has not been initialized; use hvd.init().")
    return _world


def is_initialized() -> bool:
    """Whether init() was called, and shutdown() not since."""
    return _world is not None


def init(
    comm: Sequence[int] | None = None,
    process_sets: "Sequence[ProcessSet | Sequence[int]] | str | None" = None,
) -> None:
    """Makes the groups of all ranks of the job; once more it does nothing.

    comm: the ranks of the job that take part, which alone call it; None: all
    process_sets: those that are there from the start; all ranks name the same. Others may be added
        later in any case, so that "dynamic" changes nothing.

    Under rdmarun, torchrun or in torch's default group the ranks are those; else there is one.
    Raises ValueError for a comm that is no list of ranks of the job with this one among them, and
    for variables that make no sense; OSError where HOROVOD_TIMELINE names a file that cannot be
    made; RuntimeError under horovodrun, by which ranks do not meet.
    """
    global _world
    if _world is not None:
        return
    if isinstance(process_sets, str) and process_sets != "dynamic":
        raise ValueError(f'process_sets={process_sets!r}: give process sets, or "dynamic"')
    read_limits()
    variables.refuse_horovodrun()
    variables.take_log_level()
    meeting = Meeting.of_job()
    ranks = _ranks_of(comm, meeting)
    name = f"{meeting.name}/{_starts[meeting.name]}"
    _starts[meeting.name] += 1
    world = World(meeting, ranks, name)
    timeline.begin(world.rank)
    try:
        world.sets[0] = world.make_set(list(range(world.size)), f"{name}/world")
        world.place = _find_place(world)
    except BaseException:
        world.close()
        raise
    _world = world
    variables.say_once(world.rank)
    if process_sets is not None and not isinstance(process_sets, str):
        from .process_sets import add_process_set

        for process_set in process_sets:
            add_process_set(process_set)


def _ranks_of(comm: Any, meeting: Meeting) -> list[int]:
    everyone = meeting.ranks
    if comm is None:
        return everyone
    if not isinstance(comm, (list, tuple, range)):
        raise ValueError(
            f"comm is a {type(comm).__name__}; give a list of ranks, or leave it out: ranks need "
            "no MPI here"
        )
    ranks = [int(rank) for rank in comm]
    if not ranks:
        return everyone
    if sorted(set(ranks)) != sorted(ranks) or not set(ranks) <= set(everyone):
        raise ValueError(f"comm={ranks}: give different ranks from 0 to {len(everyone) - 1}")
    if meeting.rank not in ranks:
        raise ValueError(
            f"comm={ranks} leaves out rank {meeting.rank}, which has called init(); only the ranks "
            "in it call it"
        )
    return ranks


def _find_place(world: World) -> Place:
    """By what all ranks say of their host and their number there."""
    host = os.environ.get("GROUP_RANK") or socket.gethostname()
    local = int(os.environ.get("LOCAL_RANK", -1))
    group = world.sets[0].group
    assert group is not None
    module = extension()
    said = torch.tensor(list(f"{local} {host}".encode()), dtype=torch.uint8)
    counts = group.submit(
        module.NamedKind.AllGather, "rdmacoll.place", False, [said.reshape(-1, 1)], []
    )
    counts.wait()
    text = bytes(counts.outputs()[0].flatten().tolist())
    everyones = []
    for length in counts.rows():
        local_text, _, host = text[:length].decode().partition(" ")
        everyones.append((int(local_text), host))
        text = text[length:]
    return _place_among(everyones, world.rank)


def _place_among(everyones: list[tuple[int, str]], rank: int) -> Place:
    own_host = everyones[rank][1]
    here = [r for r, (_, host) in enumerate(everyones) if host == own_host]
    # Where nobody has numbered the ranks of a host they go by rank.
    numbers = []
    seen: dict[str, int] = {}
    for local, host in everyones:
        numbers.append(local if local >= 0 else seen.get(host, 0))
        seen[host] = seen.get(host, 0) + 1
    alike = [r for r, number in enumerate(numbers) if number == numbers[rank]]
    return Place(numbers[rank], len(here), alike.index(rank), len(alike))


def shutdown() -> None:
    """Ends what init() has made. What is in flight fails, here and on the others."""
    global _world
    world, _world = _world, None
    if world is None:
        return
    world.close()
    from . import handles, process_sets

    handles.forget_all()
    process_sets.forget_all()


def size() -> int:
    """How many ranks there are."""
    return current().size


def rank() -> int:
    """This rank's number."""
    return current().rank


def local_size() -> int:
    """How many ranks there are on this host."""
    return current().place.local_size


def local_rank() -> int:
    """This rank's number on this host."""
    return current().place.local_rank


def cross_size() -> int:
    """How many hosts have a rank of this local rank."""
    return current().place.cross_size


def cross_rank() -> int:
    """This host's number among those that have a rank of this local rank."""
    return current().place.cross_rank
