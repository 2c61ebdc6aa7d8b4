"""Who waits in what, who is behind and who is missing, from the dumps of a job's ranks. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .dumps import Dump, Group, Operation

# Whose bytes are equal on all ranks.
EQUAL_BYTES = {"all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "barrier"}


@dataclass(frozen=True)
class Member:
    """A rank's part in a group; ranks are the job's."""

    rank: int
    dump: Dump
    group: Group
    collectives: tuple[Operation, ...]

    @property
    def pending(self) -> Operation | None:
        """The first that has not ended well; what failed counts, too."""
        return next((one for one in self.collectives if not one.is_done), None)

    @property
    def last(self) -> Operation | None:
        return self.collectives[-1] if self.collectives else None

    def at(self, sequence: int) -> Operation | None:
        return next((one for one in self.collectives if one.sequence == sequence), None)


@dataclass(frozen=True)
class Stuck:
    """A group whose next collective cannot end, or has failed."""

    sequence: int
    waiting: tuple[tuple[Member, Operation], ...]  # have called it
    missing: tuple[Member, ...]  # have not called it
    ahead: tuple[Member, ...]  # have done it, be it so long ago that nothing tells of it
    silent: tuple[int, ...]  # members that did not answer

    @property
    def agrees(self) -> bool:
        """Whether those who wait are in the same operation."""
        return len({signature(operation) for _, operation in self.waiting}) <= 1


@dataclass(frozen=True)
class GroupDiagnosis:
    name: str
    ranks: tuple[int, ...]
    reach: str
    failures: tuple[tuple[int, str], ...]  # rank, and what it was told
    stuck: Stuck | None
    last: int  # the newest collective that any rank has called; 0: none


@dataclass(frozen=True)
class Message:
    """A send or recv in flight, and whether the other side is there."""

    rank: int
    group: Group
    dump: Dump
    operation: Operation
    peer: int | None  # a rank of the job; None: any
    answered: bool | None  # None: the peer did not answer, or may be any


def signature(operation: Operation) -> tuple[object, ...]:
    count = operation.bytes if operation.name in EQUAL_BYTES else 0
    return operation.name, count, operation.dtype, operation.op, operation.root


def diagnose(dumps: Sequence[Dump]) -> list[GroupDiagnosis]:
    return [_diagnose(key, members) for key, members in _by_group(dumps).items()]


def _by_group(dumps: Sequence[Dump]) -> dict[tuple[str, tuple[int, ...]], list[Member]]:
    found: dict[tuple[str, tuple[int, ...]], list[Member]] = {}
    for dump in dumps:
        for group in dump.groups.values():
            if group.left and not group.failure:
                continue
            mine = [one for one in dump.operations if one.group == group.id and one.is_collective]
            mine.sort(key=lambda one: one.sequence)
            rank = group.ranks[group.rank]
            found.setdefault(group.key, []).append(Member(rank, dump, group, tuple(mine)))
    return {key: sorted(members, key=lambda one: one.rank) for key, members in found.items()}


def _diagnose(key: tuple[str, tuple[int, ...]], members: list[Member]) -> GroupDiagnosis:
    name, ranks = key
    pending = [one.pending.sequence for one in members if one.pending is not None]
    return GroupDiagnosis(
        name=name,
        ranks=ranks,
        reach=next((one.group.reach for one in members if one.group.reach), ""),
        failures=tuple((one.rank, one.group.failure) for one in members if one.group.failure),
        stuck=_stuck(min(pending), ranks, members) if pending else None,
        last=max((one.last.sequence for one in members if one.last is not None), default=0),
    )


def _stuck(sequence: int, ranks: tuple[int, ...], members: list[Member]) -> Stuck:
    called = [(one, one.at(sequence)) for one in members]
    waiting = tuple((one, op) for one, op in called if op is not None and not op.is_done)
    missing = tuple(one for one in members if one.last is None or one.last.sequence < sequence)
    late = {one.rank for one in missing} | {one.rank for one, _ in waiting}
    here = {one.rank for one in members}
    return Stuck(
        sequence=sequence,
        waiting=waiting,
        missing=missing,
        ahead=tuple(one for one in members if one.rank not in late),
        silent=tuple(rank for rank in ranks if rank not in here),
    )


def messages(dumps: Sequence[Dump]) -> Iterator[Message]:
    """The sends and receives that have not ended."""
    groups = {
        (dump.rank, group.key): (dump, group) for dump in dumps for group in dump.groups.values()
    }
    for dump in dumps:
        for operation in dump.in_flight:
            group = dump.groups.get(operation.group)
            if group is None or not operation.is_message:
                continue
            peer = group.ranks[operation.peer] if operation.peer >= 0 else None
            other = groups.get((peer, group.key)) if peer is not None else None
            answered = None if other is None else _answers(operation, group.rank, *other)
            yield Message(dump.rank, group, dump, operation, peer, answered)


def _answers(operation: Operation, me: int, dump: Dump, group: Group) -> bool:
    """Whether the peer has the other half in flight."""
    wanted = "recv" if operation.name == "send" else "send"
    return any(
        one.group == group.id
        and one.name == wanted
        and one.peer in (me, -1)
        and one.tag == operation.tag
        for one in dump.in_flight
    )
