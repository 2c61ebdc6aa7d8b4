"""What torch's profiler shows of an operation: its name and the shapes of its inputs."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from harness import distributed


@pytest.mark.parametrize("asynchronous", [False, True], ids=["blocking", "asynchronous"])
@distributed(1, 2)
def test_operations_are_shown_with_their_inputs(asynchronous: bool) -> None:
    tensor = torch.ones(3, 5)
    with torch.profiler.profile(record_shapes=True) as profile:
        work = dist.all_reduce(tensor, async_op=asynchronous)
        if asynchronous:
            work.wait()
    title = f"{dist.get_backend()}:all_reduce"
    shown = [event for event in profile.events() if event.name == title]
    assert len(shown) == 1
    assert shown[0].is_async  # what torch's own tests want of blocking calls, too
    assert shown[0].input_shapes in ([[3, 5]], [[[3, 5]]])  # ours; gloo's, in a list
