"""What the ranks of a job reach each other by, and why: all ranks run it, rank 0 has the answer."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class PeerPath:
    peer: int
    transport: str
    reason: str


@dataclass(frozen=True)
class RankPaths:
    rank: int
    host: str
    paths: list[PeerPath]


def gather_paths() -> list[RankPaths]:
    """Makes the group of the whole job; empty on every rank but 0."""
    import socket

    import torch
    import torch.distributed as dist

    dist.init_process_group("rdma")
    world = dist.distributed_c10d._get_default_group()
    backend: Any = world._get_backend(torch.device("cpu"))
    rank, size = dist.get_rank(), dist.get_world_size()
    paths = [PeerPath(*path) for path in backend._paths()]
    mine = RankPaths(rank, socket.gethostname(), paths)
    gathered: list[Any] | None = [None] * size if rank == 0 else None
    dist.gather_object(mine, gathered)
    dist.destroy_process_group()
    return gathered or []


def as_data(ranks: Sequence[RankPaths]) -> list[dict[str, Any]]:
    return [asdict(rank) for rank in ranks]


def lines(ranks: Sequence[RankPaths]) -> Iterator[str]:
    """Peers that are reached in the same way share a line."""
    for rank in ranks:
        yield f"rank {rank.rank} on {rank.host}" + ("" if rank.paths else ": alone")
        ways: dict[tuple[str, str], list[int]] = {}
        for path in rank.paths:
            ways.setdefault((path.transport, path.reason), []).append(path.peer)
        for (transport, reason), peers in ways.items():
            yield f"  -> {ranges(peers)}  {transport}: {reason}"


def ranges(ranks: Sequence[int]) -> str:
    """[0, 1, 2, 5] is "0-2, 5"."""
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
