"""Fits torch's test machinery to ours: ranks forked from this process, and gates lifted on demand.

Done before the generic tests are loaded (rewrite.py), for they copy names out of these modules.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
import torch.multiprocessing
import torch.testing._internal.common_distributed as common

TEST_TIMEOUT_S = 90
ENOUGH_RANKS = 3  # torch skips these tests below 8 ranks; they need 3


@dataclass
class Settings:
    backend: str = "rdma"
    lift_gates: bool = False
    holders: list[int] = field(default_factory=list)  # of each rank's host; none: this machine


chosen = Settings()  # set by conftest.py from the command line


def skip_if_small_worldsize(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        if int(os.environ["WORLD_SIZE"]) < ENOUGH_RANKS:
            sys.exit(common.TEST_SKIPS["small_worldsize"].exit_code)
        return function(*arguments, **options)

    return wrapper


def fork_processes(self: Any) -> None:
    """A tenth of the time that fresh interpreters take."""
    self._start_processes(torch.multiprocessing.get_context("fork").Process)


def adapt(settings: Settings) -> None:
    backend = settings.backend
    if not dist.is_backend_available(backend):
        raise RuntimeError(f"there is no backend {backend!r}: build it first (make build)")
    torch.set_num_threads(1)
    for backends in common.DistTestCases.backend_feature.values():
        if "gloo" in backends:
            backends.add(backend)
    common.skip_if_small_worldsize = skip_if_small_worldsize
    common.MultiProcessTestCase._spawn_processes = fork_processes  # type: ignore[method-assign]
    common.TIMEOUT_DEFAULT = TEST_TIMEOUT_S
    common.TIMEOUT_OVERRIDE.clear()
    if settings.lift_gates:
        lift_gates(backend)


def lift_gates(backend: str) -> None:
    """dist.monitored_barrier raises ValueError unless the backend is called gloo."""
    gated, named = c10d.monitored_barrier, c10d.get_backend

    def monitored_barrier(
        group: dist.ProcessGroup | None = None,
        timeout: timedelta | None = None,
        wait_all_ranks: bool = False,
    ) -> None:
        if c10d._rank_not_in_group(group) or named(group) != backend:
            return gated(group, timeout, wait_all_ranks)
        c10d.get_backend = lambda group=None: dist.Backend("gloo")
        try:
            return gated(group, timeout, wait_all_ranks)
        finally:
            c10d.get_backend = named

    c10d.monitored_barrier = dist.monitored_barrier = monitored_barrier
