"""What a group costs a process in descriptors: some of its own, and three for each peer."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from cases import me
from harness import distributed

OF_A_PROCESS = 20  # the Store's among them, as a group connects to it
STANDARD = 3
OF_A_PEER = 3
LACKS = "has descriptors of its own kind"


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@distributed(2, 4, 7, init=False, gloo_lacks=LACKS)
def test_three_for_each_peer() -> None:
    before = descriptors()
    dist.init_process_group("rdma")
    dist.all_reduce(torch.ones(1))
    _, world = me()
    of_group = descriptors() - before
    assert of_group <= OF_A_PROCESS - STANDARD + OF_A_PEER * (world - 1), of_group
