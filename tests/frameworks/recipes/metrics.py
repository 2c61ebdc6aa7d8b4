"""torchmetrics: metrics over all ranks, also of uneven sizes."""

import torch
import torch.distributed as dist
from recipe import ASKED, report
from torchmetrics.aggregation import CatMetric, MeanMetric
from torchmetrics.classification import BinaryAccuracy, BinaryAUROC

dist.init_process_group(ASKED)
rank = dist.get_rank()
generator = torch.Generator().manual_seed(rank)
guesses = torch.rand(20 + 7 * rank, generator=generator)
truth = (torch.rand(20 + 7 * rank, generator=generator) > 0.5).int()
found = []
for metric in BinaryAccuracy(), BinaryAUROC():
    metric.update(guesses, truth)
    found.append(metric.compute().item())
mean, listed = MeanMetric(), CatMetric()
mean.update(guesses)
listed.update(guesses)
report([*found, mean.compute().item(), *listed.compute().tolist()])
dist.destroy_process_group()
