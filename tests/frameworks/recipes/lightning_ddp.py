"""Lightning: DDPStrategy with process_group_backend, and what it logs is synced over ranks."""

import os
import sys
from typing import Any

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy
from recipe import ASKED, BATCH, examples, net, report
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset


class Task(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = net()
        self.losses: list[float] = []

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        inputs, targets = batch
        loss = mse_loss(self.model(inputs), targets)
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05)

    def on_train_end(self) -> None:
        report([*self.losses, float(self.trainer.callback_metrics["loss"])])


world = int(os.environ["WORLD_SIZE"])
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=world,
    strategy="ddp" if ASKED == "gloo" else DDPStrategy(process_group_backend=ASKED),
    max_epochs=1,
    use_distributed_sampler=False,
    enable_progress_bar=False,
    enable_checkpointing=False,
    logger=False,
)
task = Task()
data = TensorDataset(*examples(int(os.environ["RANK"])))
trainer.fit(task, DataLoader(data, batch_size=BATCH))
sys.stdout.flush()
