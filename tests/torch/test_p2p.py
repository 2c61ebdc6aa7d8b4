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


GLOO_HAS_NO_SELF = "knows no pair of a rank and itself"


@distributed(1, 2, 3, gloo_lacks=GLOO_HAS_NO_SELF)
def test_to_itself() -> None:
    rank, _ = me()
    for count, receive_first in itertools.product((0, 1, 6, 7, 1000, LARGE), (False, True)):
        own, got = values(rank, count, torch.float32), torch.zeros(count)
        works = [dist.irecv(got, rank, tag=3)] if receive_first else []
        works.append(dist.isend(own, rank, tag=3))
        if not receive_first:
            works.append(dist.irecv(got, rank, tag=3))
        for work in works:
            done(work)
        check(got, own, count, receive_first)


@distributed(1, 3, gloo_lacks=GLOO_HAS_NO_SELF)
def test_batches_with_itself() -> None:
    """All to all, by messages."""
    rank, world = me()
    own = values(rank, 20_000, torch.float32)
    got = [torch.zeros(20_000) for _ in range(world)]
    operations = [dist.P2POp(dist.isend, own, peer) for peer in range(world)]
    operations += [dist.P2POp(dist.irecv, got[peer], peer) for peer in range(world)]
    for work in dist.batch_isend_irecv(operations):
        done(work)
    for peer in range(world):
        check(got[peer], values(peer, 20_000, torch.float32), "from", peer)


@distributed(1, 3, gloo_lacks=GLOO_HAS_NO_SELF)
def test_any_source_includes_itself() -> None:
    rank, world = me()
    sends = [dist.isend(torch.tensor([rank]), peer, tag=9) for peer in range(world)]
    sources = []
    for _ in range(world):
        tensor = torch.zeros(1, dtype=torch.int64)
        work = dist.irecv(tensor, tag=9)
        assert work is not None
        work.wait()
        assert work._source_rank() == tensor.item()
        sources.append(int(tensor.item()))
    assert sorted(sources) == list(range(world))
    for work in sends:
        done(work)


@distributed(1, 2, gloo_lacks=GLOO_HAS_NO_SELF)
def test_blocking_send_to_itself() -> None:
    """A short send is buffered. A long one could never end, and says so at once."""
    rank, _ = me()
    with pytest.raises(ValueError):  # torch itself refuses it in its blocking functions
        dist.send(torch.ones(1), rank)
    pg = dist.group.WORLD
    assert pg is not None
    for count in (1, 1000):
        pg.send([values(rank, count, torch.float32)], rank, 0).wait()
        got = torch.zeros(count)
        pg.recv([got], rank, 0).wait()
        check(got, values(rank, count, torch.float32), count)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="irecv"):
            pg.send([torch.zeros(LARGE)], rank, 0).wait()
    got = torch.zeros(LARGE)
    received = pg.recv([got], rank, 0)
    pg.send([values(rank, LARGE, torch.float32)], rank, 0).wait()
    received.wait()
    check(got, values(rank, LARGE, torch.float32), "what came after those that failed")
    dist.barrier()


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
