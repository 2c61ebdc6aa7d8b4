"""Warns of ranks that train apart: each of them steps its optimizer, and nothing goes between them.

A library that knows no backend "rdma", or was told that there is one process, leaves out what
averages gradients, and says nothing. So the first steps of a process's optimizers are looked at.
After them nothing is left of this, and it costs nothing.
Floor: rdmacoll/. Thread: the one that trains.
"""

import json
import os
import sys
import time
from typing import Any

import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_post_hook

from ._extension import extension

STEPS = 4  # from the first to this one; what a library does before training begins does not count
WARNING = (
    f"rdmacoll: warning: {STEPS} optimizer steps, and nothing has gone between the ranks: does "
    "each train alone? docs/FRAMEWORKS.md#ranks-that-train-apart says how that comes about; "
    "nothing is wrong if the ranks are meant to meet more rarely"
)
PS = "RDMACOLL_SERVERS"  # gradients may go to these

_watching = False


def watch() -> None:
    """From now on, if this process is one of several; again: does nothing."""
    global _watching
    no_records = os.environ.get("RDMACOLL_FLIGHT_RECORDS") == "0"
    if _watching or no_records or PS in os.environ:
        return
    _watching = True
    look = _FirstSteps()
    look.handle = register_optimizer_step_post_hook(look)


def watch_rank() -> None:
    """watch(), in a process that is to train with others as its launcher has it."""
    ours = "RDMACOLL_AGENT" in os.environ or os.environ.get("RDMACOLL_AS_GLOO") == "1"
    if ours and os.environ.get("WORLD_SIZE", "1") != "1":
        watch()


class _FirstSteps:
    handle: Any

    def __init__(self) -> None:
        self._steps = 0
        self._since_ns = 0
        self._by_gloo = 0

    def __call__(self, *_: object) -> None:
        """Training goes on whatever comes of it: it asks torch what torch keeps to itself."""
        try:
            self._look()
        except Exception as error:
            self.handle.remove()
            print(f"rdmacoll: cannot tell whether ranks train apart: {error}", file=sys.stderr)

    def _look(self) -> None:
        self._steps += 1
        if self._steps == 1:
            self._since_ns = time.monotonic_ns()
            self._by_gloo = _operations_by_gloo()
        elif self._steps == STEPS:
            self.handle.remove()
            if _rank() == 0 and not self._may_have_met():
                print(WARNING, file=sys.stderr)

    def _may_have_met(self) -> bool:
        if _anything_since(self._since_ns):
            return True
        backends = _backends()
        if backends == ["gloo"]:
            return _operations_by_gloo() > self._by_gloo
        return any(backend != "rdma" for backend in backends)


def _rank() -> int:
    return dist.get_rank() if dist.is_initialized() else int(os.environ.get("RANK", "0"))


def _backends() -> list[str]:
    """Of each group that torch knows. For gloo on the CPU and on a GPU it has one backend."""
    configs = dist.distributed_c10d._world.pg_backend_config.values()
    backends = [{one.partition(":")[2] for one in config.split(",")} for config in configs]
    return [one for group in backends for one in group]


def _operations_by_gloo() -> int:
    """Of the default group."""
    world: Any = dist.group.WORLD
    return int(world._get_sequence_number_for_group()) if _backends() == ["gloo"] else 0


def _anything_since(since_ns: int) -> bool:
    """Whether an operation of ours began, or is under way, that is more than a barrier."""
    if "rdmacoll._C" not in sys.modules:
        return False
    dump = json.loads(extension().flight_dump())
    return any(
        operation["queued_ns"] >= since_ns and operation["operation"] != "barrier"
        for operation in dump["in_flight"] + dump["ended"]
    )
