"""Lightning: FSDP2 by ModelParallelStrategy, whose setup is the script's own."""

import os
from typing import Any

import lightning
import torch
from lightning.pytorch.strategies import ModelParallelStrategy
from recipe import ASKED, BATCH, examples, net, report
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset


class Task(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = net()
        self.losses: list[float] = []

    def configure_model(self) -> None:
        mesh = self.device_mesh["data_parallel"]
        for layer in self.model.children():
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer, mesh=mesh)
        fully_shard(self.model, mesh=mesh)

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        inputs, targets = batch
        loss = mse_loss(self.model(inputs), targets)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05)

    def on_train_end(self) -> None:
        report(self.losses)


world = int(os.environ["WORLD_SIZE"])
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=world,
    strategy=ModelParallelStrategy(
        data_parallel_size=world,
        tensor_parallel_size=1,
        process_group_backend=None if ASKED == "gloo" else ASKED,
    ),
    max_epochs=1,
    use_distributed_sampler=False,
    enable_progress_bar=False,
    enable_checkpointing=False,
    logger=False,
)
data = TensorDataset(*examples(int(os.environ["RANK"])))
trainer.fit(Task(), DataLoader(data, batch_size=BATCH))
