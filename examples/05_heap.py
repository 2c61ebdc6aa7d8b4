"""Trains with DistributedDataParallel, with gradients in the heap, where nothing is copied.

    rdmarun -np 2 examples/05_heap.py

Three equal models take turns: one with ordinary gradients, one made in the heap, and one of which
rdmacoll finds out by itself what belongs there. The script prints how long a step of each takes and
how much of the heap is used, and checks that they learn the same.
"""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import rdmacoll

WIDTH, BATCH, TURNS = 1024, 8, 12


def net() -> nn.Module:
    torch.manual_seed(1)
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(8)]
    return nn.Sequential(*(module for layer in layers for module in (layer, nn.ReLU())))


class Trainer:
    def __init__(self) -> None:
        self.model = DistributedDataParallel(net(), gradient_as_bucket_view=True)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def step(self, seed: int) -> float:
        """The seconds it took."""
        torch.manual_seed(seed * dist.get_world_size() + dist.get_rank())
        features = torch.randn(BATCH, WIDTH)
        begin = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=False)
        (self.model(features) - features).square().mean().backward()
        self.optimizer.step()
        return time.perf_counter() - begin


def main() -> None:
    dist.init_process_group(backend="rdma")
    ordinary = Trainer()
    with rdmacoll.registered_memory():
        in_heap = Trainer()
        for seed in range(2):  # DDP makes its buckets anew in the second step
            ordinary.step(seed)
            in_heap.step(seed)
    traced = Trainer()
    with rdmacoll.trace_placement(traced.model) as placement:
        for seed in range(2):  # what meets collectives is moved where the next step begins
            traced.step(seed)
        placement.step()
    trainers = (ordinary, in_heap, traced)
    times = [[trainer.step(seed) for trainer in trainers] for seed in range(2, TURNS)]
    medians = (sorted(column)[len(column) // 2] * 1e3 for column in zip(*times, strict=True))

    for trainer in (in_heap, traced):
        parameters = list(trainer.model.parameters())
        assert all(p.grad is not None and rdmacoll.in_heap(p.grad) for p in parameters)
        pairs = zip(ordinary.model.parameters(), parameters, strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)
    if dist.get_rank() == 0:
        used = rdmacoll.memory_stats()["allocated_bytes"] / 2**20
        plain, made, found = medians
        print(f"a step takes {plain:.1f} ms, made in the heap {made:.1f} ms, traced {found:.1f} ms")
        print(f"{used:.0f} MiB of the heap are in use; all models are the same bit for bit")
        print(placement.report())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
