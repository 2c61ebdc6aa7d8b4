"""A script of Horovod, as it is: `import horovod.torch` finds rdmacoll.

    rdmarun -np 2 --horovod examples/13_horovod.py

Each rank trains on its own share of the digits, of which rank 0 has a few batches more; hvd.join()
lets the others wait for it. With `import rdmacoll.horovod as hvd` it runs without --horovod, too.
"""

import horovod.torch as hvd
import torch
from sklearn.datasets import load_digits
from torch import nn

EPOCHS = 5


def main() -> None:
    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(hvd.rank())
    source = load_digits()
    images = torch.tensor(source.data[hvd.rank() :: hvd.size()], dtype=torch.float32) / 16
    labels = torch.tensor(source.target[hvd.rank() :: hvd.size()])
    more = 64 * 3 if hvd.rank() == 0 else 0  # so ranks have other numbers of batches

    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    for _ in range(EPOCHS):
        order = torch.cat([torch.randperm(len(images)), torch.arange(more)])
        for batch in order.split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
        last = hvd.join()  # the others go on with zeros of this rank until all are here
    hvd.broadcast_parameters(model.state_dict(), root_rank=last)

    right = (model(images).argmax(1) == labels).float().mean()
    right = hvd.allreduce(right, name="right")
    if hvd.rank() == 0:
        print(f"{hvd.size()} ranks, {100 * right:.1f} % right; rank {last} was the last one")
    hvd.shutdown()


if __name__ == "__main__":
    main()
