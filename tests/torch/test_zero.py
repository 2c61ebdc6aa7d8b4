"""ZeroRedundancyOptimizer: sharded optimizer states, the same training."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from harness import distributed
from models import check_equal_on_ranks, check_same, net, serial, train
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


@pytest.mark.parametrize("as_bucket_view", [False, True])
@distributed(1, 2, 3, 4)
def test_same_training(as_bucket_view: bool) -> None:
    model = DDP(net())
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(),
        torch.optim.SGD,
        parameters_as_bucket_view=as_bucket_view,
        lr=0.1,
        momentum=0.9,
    )
    train(model, optimizer=optimizer)
    check_same(model.module, serial())


@distributed(2, 3)
def test_consolidated_state() -> None:
    model = DDP(net())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    train(model, optimizer=optimizer)
    optimizer.consolidate_state_dict(to=0)
    if dist.get_rank() == 0:
        assert len(optimizer.state_dict()["state"]) == len(list(model.parameters()))
    check_equal_on_ranks(model)
