"""What `rdmacoll top` shows, as a table of rich. Pure."""

from collections.abc import Sequence

from rich.table import Table

from rdmacoll.base.byte_sizes import text_of_size
from rdmacoll.base.rank_numbers import ranks_text
from rdmacoll.debug.diagnosis import GroupDiagnosis, diagnose
from rdmacoll.debug.dumps import Dump, Operation

from .samples import Sample

LEAST_LATE_MS = 1.0  # less is how the system wakes processes
FAR = 3.0  # times the mean of the others
LEAST_WAIT_S = 1.0  # less is seen as being late
MOST_WAITS = 3  # lines, each of a group


def table(title: str, shown: Sequence[Sample]) -> Table:
    made = Table(title=title, title_justify="left", box=None)
    for name in ("rank", "pid", "host", "in", "for", "ops/s", "GB/s", "busy", "late by"):
        is_text = name in ("host", "in")
        # Where a terminal is narrow this one is on two lines.
        made.add_column(name, justify="left" if is_text else "right", no_wrap=name != "in")
    latest = late(shown)
    for one in shown:
        made.add_row(
            str(one.rank),
            str(one.pid),
            one.host,
            _text_of(one.now) if one.now is not None else "",
            _time(one.now_s) if one.now is not None else "",
            f"{one.per_s:.0f}",
            f"{one.gb_per_s:.3f}",
            f"{one.share:.0%}",
            "" if one.late_ms is None else _time(one.late_ms / 1e3),
            style="bold" if one is latest else "",
        )
    return made


def late(shown: Sequence[Sample]) -> Sample | None:
    """The rank for which the others wait, if it is one."""
    known = [one for one in shown if one.late_ms is not None]
    worst = max(known, key=lambda one: one.late_ms or 0.0, default=None)
    if worst is None or worst.late_ms is None or worst.late_ms < LEAST_LATE_MS:
        return None
    others = [one.late_ms or 0.0 for one in known if one is not worst]
    return worst if worst.late_ms > FAR * sum(others) / max(len(others), 1) else None


def summary(shown: Sequence[Sample], dumps: Sequence[Dump], is_whole: bool) -> list[str]:
    """Lines that say whom the others wait for. is_whole: all ranks of the job have answered."""
    waits = [line for line in map(_wait, diagnose(dumps)) if line]
    if waits:
        return waits[:MOST_WAITS]
    worst = late(shown)
    if worst is None or worst.late_ms is None:
        return ["no rank is late alone"] if is_whole else []
    return [f"rank {worst.rank} is late: it comes {_time(worst.late_ms / 1e3)} after the first"]


def _wait(group: GroupDiagnosis) -> str:
    """Who has not called a collective that others have long been in; empty: nobody."""
    stuck = group.stuck
    if stuck is None or not (stuck.missing or stuck.silent):
        return ""
    waiting = [(one, operation) for one, operation in stuck.waiting if not operation.ended_ns]
    longest_s = max((one.dump.seconds_since(op.queued_ns) for one, op in waiting), default=0.0)
    if longest_s < LEAST_WAIT_S:
        return ""
    line = f"in {_text_of(waiting[0][1])} #{stuck.sequence} for {_time(longest_s)}: "
    line += ranks_text(one.rank for one, _ in waiting)
    if stuck.missing:
        line += f"; not yet: {ranks_text(one.rank for one in stuck.missing)}"
    return f"{line}; no answer: {ranks_text(stuck.silent)}" if stuck.silent else line


def _text_of(operation: Operation) -> str:
    return f"{operation.name} {text_of_size(operation.bytes) if operation.bytes else ''}".rstrip()


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"
