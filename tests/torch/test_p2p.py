"""send, recv and their batches: matched in order per source and tag, never blocking each other."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.distributed as dist
from cases import LARGE, LAYOUTS, MOVABLE, check, done, lacks, me, values
from harness import ALL_WORLDS, distributed

MANY = 50  # more than the envelopes a peer keeps


@distributed(2, 3)
def test_every_type_and_layout() -> None:
    rank, world = me()
    for dtype, count, layout in itertools.product(MOVABLE, (0, 1, 1021), LAYOUTS):
        if lacks("p2p", dtype, layout=layout):
            continue
        if rank == 0:
            dist.send(layout(values(0, count, dtype)), world - 1)
        if rank == world - 1:
            tensor = layout(torch.zeros(count).to(dtype))
            assert dist.recv(tensor, 0) == 0
            check(tensor, values(0, count, dtype), dtype, count, layout.__name__)


@distributed(2, 3, 4, 7)
def test_every_pair() -> None:
    rank, world = me()
    for source, destination in itertools.permutations(range(world), 2):
        for count in (1, 5000):
            if rank == source:
                dist.send(values(source, count, torch.float32), destination)
            if rank == destination:
                tensor = torch.zeros(count)
                dist.recv(tensor, source)
                check(tensor, values(source, count, torch.float32), source, destination)


@distributed(2)
def test_large() -> None:
    rank, _ = me()
    for count in (100_003, LARGE, (5 << 20) // 4):
        own = values(rank, count, torch.float32)
        theirs = torch.zeros(count)
        works = [dist.isend(own, 1 - rank), dist.irecv(theirs, 1 - rank)]
        for work in works:
            done(work)
        check(theirs, values(1 - rank, count, torch.float32), count)


@distributed(2)
def test_tags_out_of_order() -> None:
    rank, _ = me()
    tags = list(range(10))
    tensors = [torch.full((3,), float(tag if rank == 0 else -1)) for tag in tags]
    if rank == 0:
        works = [dist.isend(tensors[tag], 1, tag=tag) for tag in tags]
    else:
        works = [dist.irecv(tensors[tag], 0, tag=tag) for tag in reversed(tags)]
    for work in works:
        done(work)
    assert [int(tensor[0]) for tensor in tensors] == tags


@distributed(2)
def test_one_tag_keeps_the_order() -> None:
    rank, _ = me()
    tensors = [torch.full((1 + 700 * (i % 3),), float(i)) for i in range(MANY)]
    if rank == 0:
        works = [dist.isend(tensor, 1) for tensor in tensors]
    else:
        received = [torch.zeros_like(tensor) for tensor in tensors]
        works = [dist.irecv(tensor, 0) for tensor in received]
    for work in works:
        done(work)
    if rank == 1:
        for i, (tensor, expected) in enumerate(zip(received, tensors, strict=True)):
            check(tensor, expected, "message", i)


@distributed(2, 3)
def test_many_unexpected() -> None:
    """Sends that nobody has asked for yet block neither each other nor a collective."""
    rank, world = me()
    if rank == 0:
        tensors = [torch.full((2000,), float(i)) for i in range(MANY)]
        works = [dist.isend(tensor, 1, tag=i) for i, tensor in enumerate(tensors)]
        for work in works:
            done(work)
    if rank == 1:
        for i in reversed(range(MANY)):
            tensor = torch.zeros(2000)
            dist.recv(tensor, 0, tag=i)
            check(tensor, torch.full((2000,), float(i)), "tag", i)
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total.item() == world


@distributed(3, 4, 7)
def test_any_source() -> None:
    rank, world = me()
    if rank:
        for step in range(3):
            dist.send(torch.tensor([rank, step]), 0)
    else:
        steps = dict.fromkeys(range(1, world), 0)
        for _ in range(3 * (world - 1)):
            tensor = torch.zeros(2, dtype=torch.int64)
            source = dist.recv(tensor)
            assert tensor.tolist() == [source, steps[source]]
            steps[source] += 1
        assert set(steps.values()) == {3}


@distributed(3)
def test_any_source_by_tag() -> None:
    rank, _ = me()
    if rank:
        dist.send(torch.tensor([rank]), 0, tag=rank)
        return
    for tag in (2, 1):
        tensor = torch.zeros(1, dtype=torch.int64)
        assert dist.recv(tensor, tag=tag) == tag
        assert tensor.item() == tag


@distributed(2, 3, 4, 7)
def test_ring_in_both_directions() -> None:
    rank, world = me()
    right, left = (rank + 1) % world, (rank - 1) % world
    for count in (1, 4099, 200_003):
        from_left, from_right = torch.zeros(count), torch.zeros(count)
        operations = [
            dist.P2POp(dist.isend, values(rank, count, torch.float32), right, tag=1),
            dist.P2POp(dist.isend, values(rank + 50, count, torch.float32), left, tag=2),
            dist.P2POp(dist.irecv, from_left, left, tag=1),
            dist.P2POp(dist.irecv, from_right, right, tag=2),
        ]
        for work in dist.batch_isend_irecv(operations):
            done(work)
        check(from_left, values(left, count, torch.float32), "from the left", count)
        check(from_right, values(right + 50, count, torch.float32), "from the right", count)


@distributed(2, 3)
def test_waits_in_any_order() -> None:
    rank, world = me()
    peers = [peer for peer in range(world) if peer != rank]
    sent = {peer: values(rank, 3000, torch.float32) for peer in peers}
    received = {peer: torch.zeros(3000) for peer in peers}
    receives = [dist.irecv(received[peer], peer) for peer in peers]
    sends = [dist.isend(sent[peer], peer) for peer in peers]
    for work in reversed(receives + sends):
        done(work)
    for peer in peers:
        check(received[peer], values(peer, 3000, torch.float32), f"from {peer}")


@pytest.mark.parametrize("counts", [(3, 4), (4, 3), (3, 50_000), (50_000, 3), (50_000, 60_000)])
@distributed(2, gloo_lacks="truncates or aborts")
def test_different_sizes_raise(counts: tuple[int, int]) -> None:
    """On both sides; but a small message may have left its sender before."""
    rank, _ = me()
    small = counts[rank] < 100
    try:
        if rank == 0:
            dist.send(torch.ones(counts[0]), 1)
        else:
            dist.recv(torch.ones(counts[1]), 0)
    except RuntimeError as error:
        assert all(str(4 * count) in str(error) for count in counts), error
    else:
        assert rank == 0 and small, "no error"
    total = torch.ones(1)
    dist.all_reduce(total)  # a failed pair does not spoil the group
    assert total.item() == 2


@distributed(2)
def test_to_itself_raises() -> None:
    rank, _ = me()
    for call in (dist.send, dist.recv, dist.isend, dist.irecv):
        with pytest.raises((ValueError, RuntimeError)):
            call(torch.ones(1), rank)


@distributed(*ALL_WORLDS)
def test_pipeline() -> None:
    """Each stage adds its number to every microbatch."""
    rank, world = me()
    for microbatch in range(8):
        tensor = torch.full((257,), float(microbatch))
        if rank:
            dist.recv(tensor, rank - 1, tag=microbatch)
        tensor += rank
        if rank < world - 1:
            dist.send(tensor, rank + 1, tag=microbatch)
        else:
            expected = microbatch + world * (world - 1) // 2
            check(tensor, torch.full((257,), float(expected)), "microbatch", microbatch)
