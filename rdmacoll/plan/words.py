"""What ranks do, in sentences. Pure.

The sentences are made from the places and ranks that steps name, not from what algorithm it is: a
new one needs no words of its own.
"""

from collections.abc import Iterable, Iterator, Sequence

from rdmacoll.base.byte_sizes import text_of_size

from .flows import Flow, Flows
from .roles import Move, Role, Statement
from .steps import Operand

MOST_SPANS = 3  # of a list of numbers
MOST_LINKS = 8  # of hosts, in one line
WHERE = {"near": "inside the host", "far": "across the network", "self": "that it is itself"}
VERBS = {"copy": "takes", "reduce": "folds", "finish": "folds"}


def role_heading(role: Role) -> str:
    first, *others = role.ranks
    return f"rank {first}" + (f", and like it {numbers('rank', others)}" if others else "")


def sentence(statement: Statement) -> str:
    verb, sources, destinations = statement.kind
    if not statement.moves:
        doing = "signals" if verb == "signal" else "waits for"
        return f"{doing} {_ranks(sources[0], statement.peers)}"
    first, *others = (_source(place, statement.moves) for place in sources)
    taken = f"{first} with {_joined(others)}" if others else first
    result = " into the result" if verb == "finish" else ""
    done = [_destination(place, statement.moves) for place in destinations]
    doing = _joined([f"{VERBS[verb]} {taken}{result}", *done])
    return f"{doing} ({_amount(statement.moves)})"


def link_lines(links: Flows, hosts: int) -> Iterator[str]:
    """links: between hosts."""
    alike: dict[str, list[tuple[int, int]]] = {}
    for link, flow in sorted(links.items()):
        alike.setdefault(_flow(flow), []).append(link)
    for sent, pairs in alike.items():
        if len(pairs) == hosts * (hosts - 1):
            yield f"each host to each other: {sent}"
            return
        named = [f"{sender} to {receiver}" for sender, receiver in pairs[:MOST_LINKS]]
        more = f", ... ({len(pairs)} such)" if len(pairs) > MOST_LINKS else ""
        yield f"host {', '.join(named)}{more}: {sent}"


def numbers(noun: str, values: Iterable[int]) -> str:
    """rank 3; ranks 1-7; ranks 0, 8, 16, ... 4088 (512 of them)."""
    spans = _spans(sorted(set(values)))
    count = sum(last - first + 1 for first, last in spans)
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    if len(texts) > MOST_SPANS + 1:
        texts = [*texts[:MOST_SPANS], f"... {texts[-1]} ({count} of them)"]
    return f"{noun}{'' if count == 1 else 's'} {', '.join(texts)}"


def _spans(values: Sequence[int]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for value in values:
        if spans and spans[-1][1] == value - 1:
            spans[-1] = spans[-1][0], value
        else:
            spans.append((value, value))
    return spans


def _flow(flow: Flow) -> str:
    pairs = "1 pair" if flow.pairs == 1 else f"{flow.pairs} pairs"
    messages = "1 message" if flow.messages == 1 else f"{flow.messages} messages"
    size = f"{text_of_size(flow.bytes)}, " if flow.bytes else ""
    return f"{size}between {pairs} of ranks, {messages} per tile"


def _joined(parts: Sequence[str]) -> str:
    *before, last = parts
    return f"{', '.join(before)} and {last}" if before else last


def _source(place: str, moves: Sequence[Move]) -> str:
    ranks = [operand.rank for move in moves for operand in move.sources[place]]
    several = len(set(ranks)) > 1
    match place.split():
        case [own]:
            return f"its {own}"
        case ["slot", "self"]:
            return "what it has kept"
        case ["peer_stage", _]:
            return f"what {numbers('rank', ranks)} {'show' if several else 'shows'}"
        case [_, where]:
            have = "have" if several else "has"
            return f"what {numbers('rank', ranks)} {have} sent {WHERE[where]}"
    raise ValueError(place)


def _destination(place: str, moves: Sequence[Move]) -> str:
    ranks = [[operand.rank for operand in move.destinations[place]] for move in moves]
    everyone = {rank for each in ranks for rank in each}
    blocks = {move.blocks for move in moves}
    match place.split():
        case ["output"]:
            return "writes it to its output"
        case ["stage"]:
            return "shows it to its host"
        case [_, "self"]:
            return "keeps it"
        case [_, where]:
            shared = len(blocks) > 1 and any(set(each) != everyone for each in ranks)
            return f"sends {'a part' if shared else 'it'} to {_ranks(where, everyone)}"
    raise ValueError(place)


def _ranks(where: str, ranks: Iterable[int]) -> str:
    return f"{numbers('rank', ranks)} {WHERE[where]}"


def _amount(moves: Sequence[Move]) -> str:
    blocks = numbers("block", (block for move in moves for block in move.blocks))
    # One that goes to several counts once. Messages use the numbers of what is passed on again.
    sizes = {(move.blocks, _copied(move)): move.bytes for move in moves}
    return f"{blocks}: {text_of_size(sum(sizes.values()))}"


def _copied(move: Move) -> Operand | None:
    """None: it is a fold."""
    operands = [operand for place in move.sources.values() for operand in place]
    return operands[0] if len(operands) == 1 else None
