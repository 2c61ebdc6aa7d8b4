"""Where parts of tensors lie in each other, and what is read of them, without any process."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest
import torch

from rdmacoll import remote
from rdmacoll.remote.memory.kind import Kind
from rdmacoll.remote.versions.parts import Part, make_up
from rdmacoll.remote.versions.reading import Reading
from rdmacoll.remote.versions.table import Table, Told

SHAPES = ((), (1,), (5,), (0, 3), (3, 4), (2, 3, 2))


def boxes(shape: tuple[int, ...]) -> Iterator[Part]:
    """All parts that are not empty."""
    ranges = [[(a, b - a) for a in range(n) for b in range(a + 1, n + 1)] for n in shape]
    for box in itertools.product(*ranges):
        yield Part(tuple(a for a, _ in box), tuple(n for _, n in box))


def elements(part: Part) -> set[tuple[int, ...]]:
    ranges = [range(a, a + n) for a, n in zip(part.offsets, part.sizes, strict=True)]
    return set(itertools.product(*ranges))


@pytest.mark.parametrize("shape", SHAPES)
def test_all_pairs_of_parts(shape: tuple[int, ...]) -> None:
    whole = torch.arange(Part.whole(shape).elements).view(shape)
    for one, other in itertools.product(boxes(shape), repeat=2):
        both = one.overlap(other)
        assert (elements(both) if both else set()) == elements(one) & elements(other)
        if both is None:
            continue
        its = whole[other.index_in(Part.whole(shape))]
        assert torch.equal(its[both.index_in(other)], whole[both.index_in(Part.whole(shape))])
        rows = both.rows_in(other)
        run = its.flatten()[rows.elements_before(other) :][: rows.elements]
        assert torch.equal(run.view(rows.sizes), its[rows.index_in(other)])
        assert elements(both) <= elements(rows) <= elements(other)


def splits(length: int) -> Iterator[list[tuple[int, int]]]:
    """All ways to cut a dimension."""
    for cuts in itertools.product((False, True), repeat=max(length - 1, 0)):
        ends = [i + 1 for i, cut in enumerate(cuts) if cut] + [length]
        firsts = [0, *ends[:-1]]
        yield [(first, end - first) for first, end in zip(firsts, ends, strict=True)]


@pytest.mark.parametrize("shape", [(), (4,), (3, 3), (2, 2, 2)])
def test_what_makes_up_a_whole(shape: tuple[int, ...]) -> None:
    for of_each in itertools.product(*map(list, map(splits, shape))):
        parts = [
            Part(tuple(a for a, _ in box), tuple(n for _, n in box))
            for box in itertools.product(*of_each)
        ]
        assert make_up(parts, shape)
        assert make_up(parts[::-1], shape)
        assert not make_up([*parts, parts[0]], shape)
        assert not make_up(parts[1:], shape)
        assert not make_up([Part((*part.offsets, 0), (*part.sizes, 1)) for part in parts], shape)
    assert make_up([], (3, 0))
    assert not make_up([Part((0, 0), (3, 0))], (3, 0))
    assert not make_up([], shape)


@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_sets_of_parts_that_cover_each_element_once(shape: tuple[int, ...]) -> None:
    """Of two rows of three, all that cover each once are cut as meshes cut."""
    all_boxes = list(boxes(shape))
    for count in (1, 2, 3):
        for parts in itertools.combinations(all_boxes, count):
            covered = [element for part in parts for element in elements(part)]
            once = sorted(covered) == sorted(elements(Part.whole(shape)))
            by_rows = all(
                a.offsets[0] >= b.offsets[0] + b.sizes[0]
                or b.offsets[0] >= a.offsets[0] + a.sizes[0]
                or (a.offsets[0], a.sizes[0]) == (b.offsets[0], b.sizes[0])
                for a, b in itertools.combinations(parts, 2)
            )
            assert make_up(parts, shape) == (once and by_rows), parts


def chunks(shape: tuple[int, ...], cuts: tuple[int, ...]) -> list[Part]:
    """As a mesh of this shape cuts the first dimensions, with empty parts at the end."""
    of_each = []
    for length, count in itertools.zip_longest(shape, cuts, fillvalue=1):
        size = -(-length // count)
        of_each.append(
            [(min(i * size, length), max(min(size, length - i * size), 0)) for i in range(count)]
        )
    return [
        Part(tuple(a for a, _ in box), tuple(n for _, n in box))
        for box in itertools.product(*of_each)
    ]


WAYS = [(1, 1), (2, 1), (1, 2), (3, 1), (4, 1), (1, 4), (2, 2), (4, 2)]
TENSORS = {"a": (7, 3), "b": (5, 6), "c": (2, 2, 3), "d": (1, 1), "e": (3, 0), "f": (6, 4)}


def arranged(ways: tuple[int, int]) -> tuple[Table, list[torch.Tensor]]:
    """Wholes published in parts; and what each rank has of a version."""
    of_each = {name: chunks(shape, ways) for name, shape in TENSORS.items()}
    kinds = {name: Kind(torch.int16, shape) for name, shape in TENSORS.items()}
    ranks = ways[0] * ways[1]
    told = [
        Told(rank, b"there", {name: (kinds[name], of_each[name][rank]) for name in TENSORS})
        for rank in range(ranks)
    ]
    table = Table.decode(Table.of(told).encode(), "it")
    versions = []
    for rank in range(ranks):
        layout = table.layout_of(rank)
        memory = torch.full((max(layout.bytes, 1),), 0x77, dtype=torch.uint8)
        for name in layout.kinds:
            whole = Part.whole(TENSORS[name])
            part = table.tensors[name].parts[rank]
            layout.view(memory, name).copy_(whole_of(name)[part.index_in(whole)])
        versions.append(memory)
    return table, versions


def whole_of(name: str) -> torch.Tensor:
    whole = Part.whole(TENSORS[name])
    return (torch.arange(whole.elements) + 1000 * ord(name) % 7).to(torch.int16).view(whole.sizes)


@pytest.mark.parametrize("published", WAYS)
@pytest.mark.parametrize("wanted", WAYS)
def test_any_part_is_read_from_any_parts(
    published: tuple[int, int], wanted: tuple[int, int]
) -> None:
    table, versions = arranged(published)
    parts = {name: chunks(shape, wanted) for name, shape in TENSORS.items()}
    for rank in range(wanted[0] * wanted[1]):
        want = {name: parts[name][rank] for name in TENSORS}
        reading = Reading(table, want, lambda n: torch.zeros(n, dtype=torch.uint8))
        for owner, ways in reading.parts.items():
            assert owner in table.needed()
            for first, to, count in ways:
                assert count <= len(versions[owner]) - first
                reading.memory[to : to + count] = versions[owner][first : first + count]
        for name, tensor in reading.result().items():
            index = want[name].index_in(Part.whole(TENSORS[name]))
            assert torch.equal(tensor, whole_of(name)[index]), (name, rank)


def test_a_state_of_one_owner_is_read_as_one_piece() -> None:
    table, versions = arranged((1, 1))
    wholes = {name: Part.whole(shape) for name, shape in TENSORS.items()}
    reading = Reading(table, wholes, lambda n: torch.zeros(n, dtype=torch.uint8))
    assert reading.parts == {0: [(0, 0, len(versions[0]))]}


def test_rows_are_read_to_where_they_belong() -> None:
    table, _ = arranged((4, 1))
    wholes = {name: Part.whole(shape) for name, shape in TENSORS.items()}
    reading = Reading(table, wholes, lambda n: torch.zeros(n, dtype=torch.uint8))
    assert len(reading.memory) == arranged((1, 1))[0].layout_of(0).bytes, "nothing is read aside"


def test_ranks_whose_tensors_do_not_belong_together() -> None:
    kind, other = Kind(torch.int16, (4,)), Kind(torch.int8, (4,))
    upper, lower, whole = Part((0,), (2,)), Part((2,), (2,)), Part((0,), (4,))

    def table(*tensors: dict[str, tuple[Kind, Part]]) -> Table:
        return Table.of([Told(rank, b"", its) for rank, its in enumerate(tensors)])

    assert table({"x": (kind, whole)}, {"x": (kind, whole)}).tensors["x"].parts == {0: whole}
    assert table({"x": (kind, upper)}, {"x": (kind, lower)}).needed() == [0, 1]
    with pytest.raises(ValueError, match="other names on rank 1"):
        table({"x": (kind, upper)}, {"y": (kind, lower)})
    with pytest.raises(ValueError, match="int8.*on rank 1 and .*int16.*on rank 0"):
        table({"x": (kind, upper)}, {"x": (other, lower)})
    for parts in ([upper, whole], [upper, upper], [lower, lower]):
        with pytest.raises(ValueError, match="not made up"):
            table(*({"x": (kind, part)} for part in parts))


def test_tables_that_make_no_sense() -> None:
    text = arranged((2, 2))[0].encode()
    assert Table.decode(text, "it").encode() == text
    owners, tensors = json.loads(text)
    name, kind, parts = tensors[0]
    owner, offsets, sizes = parts[0]
    wrong = [
        [],
        [owners],
        [[], []],
        [owners, [[name, kind, parts[1:]]]],
        [owners, [[name, kind, [[4, offsets, sizes], *parts[1:]]]]],
        [owners, [[name, kind, [[-1, offsets, sizes], *parts[1:]]]]],
        [owners, [[name, kind, [[owner, offsets[1:], sizes], *parts[1:]]]]],
        [owners, [[name, kind, [[owner, offsets, [1.5, 2]], *parts[1:]]]]],
        [owners, [[name, 3, parts]]],
        [[[0, 7]], tensors],
        [[["0", "aa=="]], tensors],
        {},
        None,
    ]
    for each in [*(json.dumps(value).encode() for value in wrong), b"[" * 100_000, b"\xff", b""]:
        with pytest.raises(remote.PeerError, match="makes no sense"):
            Table.decode(each, "it")
