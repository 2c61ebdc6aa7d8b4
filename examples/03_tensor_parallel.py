"""Tensor-parallel inference: each rank holds a slice of every weight of a transformer's block.

    rdmarun -np 2 examples/03_tensor_parallel.py

The heads of the attention and the hidden units of the MLP are shared out among the ranks; one
all_reduce after each puts the pieces together. The result is compared with the undivided block.
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.functional import scaled_dot_product_attention

HEAD, HEADS = 16, 12  # heads divide among 1, 2, 3, 4, 6 and 12 ranks
WIDTH = HEAD * HEADS


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))

    def forward(self, tokens: Tensor) -> Tensor:
        normed = self.norms[0](tokens)
        query, key, value = (
            layer(normed).unflatten(-1, (-1, HEAD)).transpose(1, 2)  # only this rank's heads
            for layer in (self.query, self.key, self.value)
        )
        attended = scaled_dot_product_attention(query, key, value, is_causal=True)
        tokens = tokens + self.out(attended.transpose(1, 2).flatten(-2))
        return tokens + self.down(nn.functional.gelu(self.up(self.norms[1](tokens))))


PLAN = {
    **{name: ColwiseParallel() for name in ("query", "key", "value", "up")},
    **{name: RowwiseParallel() for name in ("out", "down")},
}


def block() -> Block:
    torch.manual_seed(0)
    return Block().eval()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="rdma")
    dist.init_process_group(parser.parse_args().backend)
    rank, world = dist.get_rank(), dist.get_world_size()

    whole = block()
    divided = parallelize_module(block(), init_device_mesh("cpu", (world,)), PLAN)
    tokens = torch.randn(2, 32, WIDTH)
    with torch.inference_mode():
        difference = (divided(tokens) - whole(tokens)).abs().max().item()
    own = sum(
        p.to_local().numel() if hasattr(p, "to_local") else p.numel() for p in divided.parameters()
    )
    total = sum(parameter.numel() for parameter in whole.parameters())
    print(f"rank {rank} holds {own} of {total} weights; largest difference {difference:.1e}")
    if difference > 1e-5:
        raise SystemExit("the divided block computes something else")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
