"""ElasticSampler: shares the samples of an epoch among ranks, and what is left of it once more.

Floor: rdmacoll/horovod/elastic. Thread: the one that trains.
"""

import random
from collections.abc import Iterator, Sized
from itertools import cycle, islice
from typing import Any

import torch

from rdmacoll.horovod.names.world import rank, size


class ElasticSampler(torch.utils.data.Sampler[int]):
    """Numbers of samples for this rank, as DistributedSampler has them.

    As part of a TorchState it shares out anew, when ranks change, what was not yet processed. So
    call record_batch() after each batch, and set_epoch() at the end of an epoch.

    dataset: of a constant size; shuffle: each epoch in an order of its own, which is the same on
    all ranks; seed: of that order, the same on all ranks. Every rank gets equally many: some get
    samples that another one has, too.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_num = 0  # on all ranks, in this epoch
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begins this epoch: nothing of it is processed."""
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """All ranks have processed a batch of this size; batch_idx: of no meaning here."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.epoch = state_dict["epoch"]
        self.processed_num = state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Shares out what is not processed among the ranks that there are now."""
        self.num_replicas = size()
        self.rank = rank()
        everything = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(everything)
        self.remaining_indices = everything[self.processed_num :]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        return islice(cycle(self.remaining_indices), self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples
