"""The engine's counters of what set-up costs, as the tests on RDMA devices read them."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from cases import me
from harness import distributed


def counters(group: dist.ProcessGroup | None = None) -> dict[str, int]:
    backend: Any = (group or dist.group.WORLD)._get_backend(  # type: ignore[union-attr]
        torch.device("cpu")
    )
    found: dict[str, int] = backend._counters()
    return found


@distributed(1, 2, gloo_lacks="has no counters", one_host=True)
def test_shared_memory_registers_nothing_with_a_device() -> None:
    _, world = me()
    total = torch.ones(1000)
    dist.all_reduce(total)
    assert total[0].item() == world
    group = dist.new_group()
    assert counters() == counters(group) == {"registrations": 0, "control_messages": 0}
    dist.destroy_process_group(group)
