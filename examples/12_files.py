"""Checkpoints in plain files that are in memory, at two servers, and outlive one of them.

    rdmarun -np 2 --servers 2 --server-restarts 1 --mount out/files examples/12_files.py

The folder of --mount shows the files at the job's servers. The ranks train under DDP, and rank 0
writes a checkpoint there after each epoch, with torch.save and numpy. Meanwhile another program,
which knows numpy and paths and no more, reads it again and again. On the way rank 0 kills one of
the servers. What is read is whole all the same, and in the end all ranks load what they have.
"""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from kill_a_server import kill_a_server
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FOLDER = Path(os.environ["RDMACOLL_MOUNT"])
MODEL, WEIGHTS = FOLDER / "model.pt", FOLDER / "weights.npz"
EPOCHS, KILL_AFTER = 6, 2

READER = """
import sys, time
from hashlib import sha256
import numpy as np

path, last = sys.argv[1], int(sys.argv[2])
seen, reads = 0, 0
while seen < last:
    with np.load(path) as file:  # one version of it, as long as it is open
        assert sha256(file["weights"]).digest() == file["digest"].tobytes(), "it is torn"
        assert file["epoch"] >= seen, "it is an older one"
        seen = int(file["epoch"])
    reads += 1
    time.sleep(0.02)
print(f"a plain program has read {reads} whole files, the last one of epoch {seen}")
"""


def save(model: nn.Module, epoch: int) -> None:
    """Others see the new files once these are closed, and until then those before."""
    torch.save(model.state_dict(), MODEL)
    weights = torch.cat([one.detach().flatten() for one in model.parameters()]).numpy()
    digest = np.frombuffer(sha256(weights.tobytes()).digest(), np.uint8)
    np.savez(WEIGHTS, weights=weights, digest=digest, epoch=epoch)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("rdma")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    source = load_digits()
    images = torch.tensor(source.data[rank::ranks], dtype=torch.float32) / 16
    labels = torch.tensor(source.target[rank::ranks])
    net = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    reader = None
    for epoch in range(1, EPOCHS + 1):
        for batch in torch.randperm(len(images)).split(64):
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            save(net, epoch)
            if reader is None:
                words = [sys.executable, "-c", READER, str(WEIGHTS), str(EPOCHS)]
                reader = subprocess.Popen(words)
            if epoch == KILL_AFTER:
                print(f"epoch {epoch} is saved; {kill_a_server()}")
    if reader is not None and reader.wait(60) != 0:
        raise SystemExit("the reader has failed")

    dist.barrier()  # now it is saved
    saved = torch.load(MODEL)
    if not all(torch.equal(saved[name], value) for name, value in net.state_dict().items()):
        raise SystemExit(f"rank {rank} has loaded another model than it has")
    print(f"rank {rank} has loaded what it has: {MODEL.stat().st_size} bytes of epoch {EPOCHS}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
