"""DeepSpeed: init_distributed(dist_backend=...), and ZeRO of stages 1, 2 and 3."""

import os

import deepspeed
import torch
from recipe import ASKED, BATCH, batches, net, report
from torch.nn.functional import mse_loss

deepspeed.init_distributed(dist_backend=ASKED)
losses = []
for stage in (1, 2, 3):
    model = net()
    engine, _, _, _ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        config={
            "train_micro_batch_size_per_gpu": BATCH,
            "zero_optimization": {"stage": stage},
            "zero_allow_untested_optimizer": True,
        },
    )
    for inputs, targets in batches(int(os.environ["RANK"])):
        loss = mse_loss(engine(inputs), targets)
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
report(losses)
