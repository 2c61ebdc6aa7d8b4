"""Two dumps of each rank, as what it did between them. Pure.

A rank remembers so many operations (RDMACOLL_FLIGHT_RECORDS). Where it has done more than that
between the dumps, the rates are those of the time that it remembers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rdmacoll.debug.dumps import Dump, Operation

Call = tuple[str, tuple[int, ...], int]  # a collective: its group's name and ranks, its number


@dataclass(frozen=True)
class Sample:
    """One rank."""

    rank: int
    pid: int
    host: str
    now: Operation | None  # the oldest that it is in
    now_s: float  # for how long
    per_s: float  # operations that ended
    gb_per_s: float  # their bytes
    share: float  # of the time in which at least one was under way, from 0 to 1
    # How much later than the first rank it called what all have called; None: nothing was.
    late_ms: float | None


Process = tuple[str, int]  # its host, and its id there


def process_of(dump: Dump) -> Process:
    return dump.host, dump.pid


def samples(before: Mapping[Process, Dump], now: Sequence[Dump]) -> list[Sample]:
    """Of ranks that are in both, by rank."""
    pairs = [(before[process_of(one)], one) for one in now if process_of(one) in before]
    late_ms = _late_ms(pairs)
    found = [_sample(*pair, late_ms.get(process_of(pair[1]))) for pair in pairs]
    return sorted(found, key=lambda one: (one.rank, one.host, one.pid))


def _sample(before: Dump, now: Dump, late_ms: float | None) -> Sample:
    since_ns = _since_ns(before, now)
    span_s = max(now.clock_ns - since_ns, 1) / 1e9
    ended = [one for one in now.operations if one.ended_ns > since_ns]
    oldest = min(now.in_flight, key=lambda one: one.queued_ns, default=None)
    return Sample(
        rank=now.rank,
        pid=now.pid,
        host=now.host,
        now=oldest,
        now_s=now.seconds_since(oldest.queued_ns) if oldest is not None else 0.0,
        per_s=len(ended) / span_s,
        gb_per_s=sum(one.bytes for one in ended) / 1e9 / span_s,
        share=_covered_ns(_spans(now, since_ns)) / 1e9 / span_s,
        late_ms=late_ms,
    )


def _since_ns(before: Dump, now: Dump) -> int:
    """From when on nothing is forgotten, by the rank's clock."""
    known = [one.ended_ns for one in now.operations if one.ended_ns]
    has_forgotten = bool(known) and min(known) > before.clock_ns and bool(before.operations)
    return min(known) if has_forgotten else before.clock_ns


def _spans(dump: Dump, since_ns: int) -> Iterator[tuple[int, int]]:
    for one in dump.operations:
        end_ns = one.ended_ns or dump.clock_ns
        if end_ns > since_ns:
            yield max(one.queued_ns, since_ns), end_ns


def _covered_ns(spans: Iterable[tuple[int, int]]) -> int:
    """Of the time line: what overlaps counts once."""
    covered_ns, reached_ns = 0, 0
    for begin_ns, end_ns in sorted(spans):
        covered_ns += max(0, end_ns - max(begin_ns, reached_ns))
        reached_ns = max(reached_ns, end_ns)
    return covered_ns


def _late_ms(pairs: Sequence[tuple[Dump, Dump]]) -> dict[Process, float]:
    """The mean, over the collectives that all ranks of their group have called since. Hosts are
    compared by their clocks."""
    called: dict[Call, dict[Process, int]] = {}
    for before, now in pairs:
        since_ns = _since_ns(before, now)
        for call, one in _collectives(now):
            if one.queued_ns > since_ns:
                called.setdefault(call, {})[process_of(now)] = now.wall(one.queued_ns)
    delays: dict[Process, list[int]] = {}
    for (_, ranks, _), by_process in called.items():
        if len(ranks) < 2 or len(by_process) < len(ranks):
            continue
        first_ns = min(by_process.values())
        for process, wall_ns in by_process.items():
            delays.setdefault(process, []).append(wall_ns - first_ns)
    return {process: sum(all_ns) / len(all_ns) / 1e6 for process, all_ns in delays.items()}


def _collectives(dump: Dump) -> Iterator[tuple[Call, Operation]]:
    for one in dump.operations:
        group = dump.groups.get(one.group)
        if group is not None and one.is_collective:
            yield (*group.key, one.sequence), one
