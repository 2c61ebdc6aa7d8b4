"""Workers train a net on handwritten digits without waiting for each other: servers hold it.

    rdmarun -np 2 --servers 2 examples/10_parameter_server.py

Each worker has a part of the digits. A step pushes its gradients to the servers, which apply each
as it comes, and pulls what the parameters are then. There is no barrier between steps, so a slow
worker holds up nobody: here the last one sleeps in each step, and ends after the others.
"""

import argparse
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn

from rdmacoll import ps

BATCH, TEST_SHARE = 32, 5  # every fifth image is for the test
SLEEP_S = 0.01


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    source = load_digits()
    return torch.tensor(source.data, dtype=torch.float32) / 16, torch.tensor(source.target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400, help="of each worker")
    parser.add_argument("--goal", type=float, default=0.9, help="test accuracy to exceed")
    options = parser.parse_args()
    torch.set_num_threads(1)

    dist.init_process_group("rdma")
    rank, workers = dist.get_rank(), dist.get_world_size()
    images, labels = digits()
    is_test = torch.arange(len(labels)) % TEST_SHARE == 0
    mine = (~is_test).nonzero().flatten()[rank::workers]

    torch.manual_seed(rank)  # the first worker's parameters count
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = ps.Optimizer(net.parameters(), torch.optim.Adam, lr=3e-3)

    began = time.monotonic()
    for _ in range(options.steps):
        batch = mine[torch.randint(len(mine), (BATCH,))]
        loss = nn.functional.cross_entropy(net(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == workers - 1:
            time.sleep(SLEEP_S)
    print(f"worker {rank} made {options.steps} steps in {time.monotonic() - began:.1f} s")

    dist.barrier()  # now all have pushed
    optimizer.zero_grad()
    optimizer.step()  # pushes nothing, and pulls
    with torch.no_grad():
        right = net(images[is_test]).argmax(1) == labels[is_test]
    accuracy = right.float().mean().item()
    print(f"worker {rank} has a test accuracy of {accuracy:.2%}")
    if accuracy <= options.goal:
        raise SystemExit(f"that is not above {options.goal:.0%}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
