"""Sums of rows' gradients over the workers of a group: those of an id meet at one of them, which
adds them in the order of ranks. So the bits do not depend on who comes first.

Floor: rdmacoll/ps/base. Thread: the one that trains.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist

Rows = tuple[torch.Tensor, torch.Tensor]  # ids, each once; a row for each

MIX = -7046029254386353131  # odd, and its bits are mixed: 2**64 / golden ratio, as an int64


def added(parts: Sequence[Rows], dim: int) -> Rows:
    """The sum of these parts for each id, in their order; ids ascend."""
    if not parts:
        return torch.empty(0, dtype=torch.int64), torch.empty(0, dim)
    if len(parts) == 1:
        return parts[0]
    all_ids = torch.cat([ids for ids, _ in parts])
    ids, places = torch.unique(all_ids, return_inverse=True)
    total = torch.zeros(len(ids), dim)
    first = 0
    for of_part, rows in parts:
        total[places[first : first + len(of_part)]] += rows  # no place twice: any order will do
        first += len(of_part)
    return ids, total


def owners_of(ids: torch.Tensor, workers: int) -> torch.Tensor:
    """Which worker adds up each of them: ids of any pattern are spread evenly."""
    return ((ids * MIX) >> 32).remainder(workers)


def exchanged(mine: Rows, group: dist.ProcessGroup | None) -> Rows:
    """All workers of the group call it, each with its own rows: the sums of those that this one
    owns. Errors: as of all_to_all."""
    workers = dist.get_world_size(group)
    if workers == 1:
        return mine
    ids, rows = mine
    dim = rows.shape[1]
    owners = owners_of(ids, workers)
    order = torch.argsort(owners, stable=True)
    sent = torch.bincount(owners, minlength=workers)
    got = torch.empty_like(sent)
    dist.all_to_all_single(got, sent, group=group)
    splits = got.tolist(), sent.tolist()
    their_ids = torch.empty(sum(splits[0]), dtype=torch.int64)
    their_rows = torch.empty(len(their_ids), dim)
    dist.all_to_all_single(their_ids, ids[order], *splits, group=group)
    dist.all_to_all_single(their_rows, rows[order], *splits, group=group)
    parts = zip(their_ids.split(splits[0]), their_rows.split(splits[0]), strict=True)
    return added(list(parts), dim)
