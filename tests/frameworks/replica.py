"""One replica of test_torchft.py: rank, store's port, generation to begin with.

In generation 1 there are three. The last kills itself; the others see their operation fail and are
two in generation 2. In generation 3 it is back.
Floor: tests.
"""

import os
import signal
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torchft.process_group import ProcessGroupWrapper, reconfigure_with_store

import rdmacoll

SIZES = {1: 3, 2: 2, 3: 3}
LIMIT = timedelta(seconds=60)


class ProcessGroupRdma(ProcessGroupWrapper):
    def _create_pg(self, store: dist.Store, rank: int, world_size: int) -> dist.ProcessGroup:
        return rdmacoll.create_process_group(store, rank, world_size, self._timeout)

    def getBackendName(self) -> str:  # noqa: N802 (torchft's name)
        return "torchft-rdma"


def sum_of_all(group: ProcessGroupRdma, rank: int) -> float:
    tensor = torch.full((1000,), float(rank + 1))
    group.allreduce([tensor], dist.AllreduceOptions()).wait()
    return float(tensor[-1].item())


def live(rank: int, port: str, begin: int) -> None:
    group = ProcessGroupRdma(timeout=LIMIT)
    last = SIZES[1] - 1
    for generation, size in SIZES.items():
        if generation < begin:
            continue
        reconfigure_with_store(group, f"127.0.0.1:{port}/{generation}", rank, size, LIMIT)
        assert sum_of_all(group, rank) == size * (size + 1) / 2
        if generation == 1 and rank == last:
            os.kill(os.getpid(), signal.SIGKILL)
        if generation == 1:
            try:
                sum_of_all(group, rank)
            except RuntimeError as error:
                assert f"rank {last}" in str(error), error
            else:
                raise AssertionError("a sum without the one that was killed")
    print("SURVIVED")


live(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
