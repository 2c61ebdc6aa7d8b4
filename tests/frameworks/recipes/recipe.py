"""What the recipes share: a small task, and one line for the test that started them.

Each recipe is a script of docs/FRAMEWORKS.md. Its argument is the backend that it asks for; with
"gloo" it says what a script says that knows nothing of rdmacoll.
Floor: tests.
"""

import json
import sys

import torch
import torch.distributed as dist
from torch import Tensor, nn

ASKED = sys.argv[1] if len(sys.argv) > 1 else ""
STEPS, BATCH, INPUTS = 6, 8, 16


def net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(INPUTS, 32), nn.ReLU(), nn.Linear(32, 1))


def examples(rank: int) -> tuple[Tensor, Tensor]:
    """Other ones on each rank; the same in each run."""
    generator = torch.Generator().manual_seed(rank)
    inputs = torch.randn(STEPS * BATCH, INPUTS, generator=generator)
    return inputs, inputs.sum(1, keepdim=True)


def batches(rank: int) -> list[tuple[Tensor, Tensor]]:
    inputs, targets = examples(rank)
    return list(zip(inputs.split(BATCH), targets.split(BATCH), strict=True))


def report(values: list[float]) -> None:
    """Once, at the end, while the default group is there. Nobody ends before all have said it."""
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))  # type: ignore[union-attr]
    said = {
        "rank": dist.get_rank(),
        "values": values,
        "runs_on": type(backend).__name__,
        "named": dist.get_backend(),
    }
    # In one piece: under torchrun all ranks write to one pipe.
    sys.stdout.write(f"RESULT {json.dumps(said)}\n")
    sys.stdout.flush()
    dist.barrier()
