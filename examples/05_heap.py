"""Trains with DistributedDataParallel, with gradients in the heap, where nothing is copied.

    rdmarun -np 2 examples/05_heap.py

Two equal models, one with ordinary gradients and one in the heap, take turns; the script prints how
long a step of each takes and how much of the heap is used, and checks that they learn the same.
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
    times = [(ordinary.step(seed), in_heap.step(seed)) for seed in range(2, TURNS)]
    slow, fast = (sorted(column)[len(column) // 2] * 1e3 for column in zip(*times, strict=True))

    gradients = [parameter.grad for parameter in in_heap.model.parameters()]
    assert all(grad is not None and rdmacoll.in_heap(grad) for grad in gradients)
    pairs = zip(ordinary.model.parameters(), in_heap.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    if dist.get_rank() == 0:
        used = rdmacoll.memory_stats()["allocated_bytes"] / 2**20
        print(f"a step takes {slow:.1f} ms, with its gradients in the heap {fast:.1f} ms")
        print(f"{used:.0f} MiB of the heap are in use; both models are the same bit for bit")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
