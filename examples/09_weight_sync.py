"""A trainer publishes its weights, and readers that come and go take the newest whole version.

    rdmarun -np 3 --min-np 2 --max-restarts 1 --elastic examples/09_weight_sync.py

Rank 0 trains and waits for nobody. The others work with what they have, and look for newer weights
between two batches: inference workers, rollout workers, evaluators. Nobody calls anybody, and no
reader sees half of an update. The last rank kills itself while it reads; rdmarun starts it again,
and it goes on with the version that is the newest then. Nobody else notices: no process is in a
group with another one, and readers need no more than the trainer's address.
"""

import argparse
import itertools
import os
import signal

import torch
import torch.distributed as dist
from torch import nn

from rdmacoll import remote

BATCH, DIES_AT, GOAL = 64, 50, 0.5
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
IS_BACK = int(os.environ["TORCHELASTIC_RESTART_COUNT"]) > 0
READERS = [f"reader {rank} is done" for rank in range(1, WORLD)]


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))


def batch(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """What is learned: the sum of squares."""
    inputs = torch.rand(BATCH, 16, generator=generator)
    return inputs, inputs.square().sum(1, keepdim=True)


def train(net: nn.Module, board: dist.Store) -> None:
    published = remote.publish(net.state_dict(), "weights")
    published.update()
    board.set("trainer", remote.address())
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(1)
    while not board.check(READERS):
        inputs, targets = batch(generator)
        loss = nn.functional.mse_loss(net(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        published.update()
    print(f"trained to version {published.version}, loss {loss.item():.4f}")


def evaluate(net: nn.Module, board: dist.Store, versions: int) -> None:
    weights = remote.subscribe("weights", at=board.get("trainer").decode())
    generator = torch.Generator().manual_seed(2)
    for seen in itertools.count(1):
        version = weights.load_into(net, newer=True)
        inputs, targets = batch(generator)
        with torch.no_grad():
            loss = nn.functional.mse_loss(net(inputs), targets).item()
        if seen == 1:
            print(f"rank {RANK} begins with version {version}, loss {loss:.4f}")
        if seen == DIES_AT and RANK == WORLD - 1 and not IS_BACK:
            os.kill(os.getpid(), signal.SIGKILL)
        if seen >= versions and loss < GOAL:
            break
    print(f"rank {RANK} saw {seen} versions up to {version}, loss {loss:.4f}")
    board.set(READERS[RANK - 1], "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=200, help="that a reader reads at least")
    versions = parser.parse_args().versions
    # Each is a group of its own; they tell each other of themselves in the job's store.
    dist.init_process_group("rdma", store=dist.HashStore(), rank=0, world_size=1)
    board = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if RANK == 0:
        train(model(), board)
    else:
        evaluate(model(), board, versions)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
