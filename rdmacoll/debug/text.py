"""The dumps and the diagnosis for people: every line as it is printed. Pure."""

from collections.abc import Iterator, Sequence

from rdmacoll.base.byte_sizes import text_of_size
from rdmacoll.base.rank_numbers import ranks_text

from .diagnosis import GroupDiagnosis, Member, Message, Stuck, diagnose, messages
from .dumps import REMOTE, Dump, Operation

MOST_SHOWN = 3  # operations in flight of one rank, the rest are counted; and ended sessions
# Whose bytes are those of memory; of others they are those of a message.
MOVES = ("remote_read", "remote_write", "remote_snapshot")
HEADING = ("rank", "pid", "host", "in flight", "state", "since")


def lines(dumps: Sequence[Dump]) -> Iterator[str]:
    yield from _table(dumps)
    for dump in dumps:
        if dump.left_out:
            yield (
                f"rank {dump.rank}: {dump.left_out} operations found no room beside those in "
                "flight; raise RDMACOLL_FLIGHT_RECORDS"
            )
    diagnoses = diagnose(dumps)
    for diagnosis in diagnoses:
        yield ""
        yield from _group(diagnosis)
    waiting = [_message(message) for message in messages(dumps)]
    if waiting:
        yield ""
        yield "point-to-point"
        yield from (f"  {line}" for line in waiting)
    remote = [line for dump in dumps for line in _remote(dump)]
    if remote:
        yield ""
        yield "remote memory"
        yield from (f"  {line}" for line in remote)


def operation_text(operation: Operation) -> str:
    if operation.is_remote:
        name = f"remote {operation.name.removeprefix(REMOTE)}"
        moves = operation.name in MOVES
        return f"{name} of {text_of_size(operation.bytes)}" if moves else name
    facts = [text_of_size(operation.bytes) if operation.bytes else "", operation.dtype]
    facts += [operation.op, operation.algorithm]
    facts.append("" if operation.root < 1 else f"root {operation.root}")
    inside = ", ".join(filter(None, facts))
    return f"{operation.name} #{operation.sequence}" + (f" ({inside})" if inside else "")


def _table(dumps: Sequence[Dump]) -> Iterator[str]:
    rows = [HEADING, *(row for dump in dumps for row in _rows(dump))]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADING))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _rows(dump: Dump) -> Iterator[tuple[str, ...]]:
    who = (str(dump.rank), str(dump.pid), dump.host)
    in_flight = dump.in_flight
    for operation in in_flight[:MOST_SHOWN]:
        since = operation.started_ns or operation.queued_ns
        what = operation_text(operation)
        if operation.is_remote:
            what += f" with {_other(dump, operation)}"
        elif operation.is_message:
            what += f" {'to' if operation.name == 'send' else 'from'} {_peer(dump, operation)}"
        yield *who, what, operation.state, f"{dump.seconds_since(since):.1f} s"
        who = ("", "", "")
    if len(in_flight) > MOST_SHOWN:
        yield *who, f"and {len(in_flight) - MOST_SHOWN} more", "", ""
    if not in_flight:
        yield *who, "nothing", "", ""


def _peer(dump: Dump, operation: Operation) -> str:
    group = dump.groups.get(operation.group)
    if group is None or operation.peer < 0:
        return "any rank"
    return f"rank {group.ranks[operation.peer]}"


def _group(diagnosis: GroupDiagnosis) -> Iterator[str]:
    name = f"group {diagnosis.name}" if diagnosis.name else "group"
    reach = f"; {diagnosis.reach}" if diagnosis.reach else ""
    yield f"{name}, {ranks_text(diagnosis.ranks)}{reach}"
    for rank, why in diagnosis.failures:
        yield f"  rank {rank} failed: {why}"
    if diagnosis.stuck is None:
        last = f"the last was #{diagnosis.last}" if diagnosis.last else "there was none yet"
        yield f"  no collective is in flight; {last}"
        return
    yield from _stuck(diagnosis.stuck)


def _stuck(stuck: Stuck) -> Iterator[str]:
    by_text: dict[str, list[tuple[Member, Operation]]] = {}
    for member, operation in stuck.waiting:
        by_text.setdefault(operation_text(operation), []).append((member, operation))
    for text, waiting in by_text.items():
        longest = max(member.dump.seconds_since(op.queued_ns) for member, op in waiting)
        yield f"  in {text} for {longest:.1f} s: {ranks_text(member.rank for member, _ in waiting)}"
    if not stuck.agrees:
        yield f"  MISMATCH: these ranks are in different operations as #{stuck.sequence}"
    for member in stuck.missing:
        yield f"  MISSING: rank {member.rank} has not called #{stuck.sequence}; {_last_of(member)}"
    if stuck.silent:
        yield f"  UNKNOWN: {ranks_text(stuck.silent)} did not answer"
    if stuck.ahead:
        yield f"  done with it: {ranks_text(member.rank for member in stuck.ahead)}"
    if not stuck.missing and not stuck.silent and stuck.agrees:
        yield "  all its ranks are in it: it moves, or a rank or the network is slow"


def _last_of(member: Member) -> str:
    if member.last is None:
        return "it has called none yet"
    ago = member.dump.seconds_since(member.last.ended_ns)
    return f"its last was {operation_text(member.last)}, which ended {ago:.1f} s ago"


def _message(message: Message) -> str:
    operation = message.operation
    ago = message.dump.seconds_since(operation.queued_ns)
    peer = "any rank" if message.peer is None else f"rank {message.peer}"
    way = f"sends to {peer}" if operation.name == "send" else f"receives from {peer}"
    text = f"rank {message.rank} {way}: {text_of_size(operation.bytes)}, tag {operation.tag}"
    text += f", for {ago:.1f} s"
    if operation.state == "running":
        return text + "; matched, its data are on their way"
    half = "receive" if operation.name == "send" else "send"
    if message.answered is False:
        return f"{text}; MISSING: {peer} has no such {half} in flight"
    if message.peer is not None and message.answered is None:
        return f"{text}; UNKNOWN: {peer} did not answer"
    return text


def _remote(dump: Dump) -> Iterator[str]:
    """What a rank does with other processes' memory, and with whom it can do nothing any more."""
    for operation in dump.in_flight:
        if not operation.is_remote:
            continue
        session = dump.sessions.get(operation.group)
        whose = "session with " if session is not None and session.other else "with "
        reach = f" ({session.reach})" if session is not None and session.reach else ""
        yield (
            f"rank {dump.rank}: {operation_text(operation)}, {whose}{_other(dump, operation)}"
            f"{reach}, for {dump.seconds_since(operation.queued_ns):.1f} s"
            + ("; behind others of the session" if operation.state == "queued" else "")
        )
    # One that was closed, as nobody used it, is nobody's trouble.
    ended = [one for one in dump.sessions.values() if one.ended and one.failure]
    for one in ended[-MOST_SHOWN:]:
        other = one.other or "any process"
        yield f"rank {dump.rank}: its session with {other} has ended: {one.failure}"


def _other(dump: Dump, operation: Operation) -> str:
    session = dump.sessions.get(operation.group)
    return (session.other if session is not None else operation.other) or "any process"
