"""What each process of a measuring job does before its measurement and after it."""

import faulthandler
import gc
import json
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
import torch.distributed as dist

from rdmacoll.base import files

ROOT = 0  # the rank that has the word
STEP_TIMEOUT_S = 120.0  # for whatever is done in one turn
TIMEOUT = timedelta(seconds=STEP_TIMEOUT_S)


class WrongResult(Exception):
    """Something else was computed or moved; the message says by whom, where and what."""


class HasData(Protocol):
    def as_data(self) -> dict[str, Any]: ...


Result = TypeVar("Result", bound=HasData)


def watch() -> None:
    """Ends this process, and so the run, unless it comes here again in time; MPI never gives up."""
    faulthandler.dump_traceback_later(STEP_TIMEOUT_S, exit=True)


def run_job(
    prog: str,
    measure: Callable[[], Result],
    json_at: Path | None,
    plot_at: Path | None = None,
    draw: Callable[[Result, Path], None] | None = None,
) -> None:
    """The processes meet through torch's variables (RANK, MASTER_PORT, ...); the default group is
    gloo's. Rank 0 writes the files."""
    watch()
    torch.set_num_threads(1)
    gc.disable()  # its pauses would be some system's p99
    dist.init_process_group("gloo", timeout=TIMEOUT)
    try:
        result = measure()
    except WrongResult as error:
        # Said first: with the groups the other processes fail, and the launcher ends this one.
        print(f"{prog}: {error}", file=sys.stderr, flush=True)
        # A thread of gloo that still holds a tensor when Python ends aborts the process.
        dist.destroy_process_group()
        sys.exit(1)
    at_root = dist.get_rank() == ROOT
    dist.destroy_process_group()
    watch()
    if at_root and json_at:
        files.write(json_at, json.dumps(result.as_data(), indent=1) + "\n", files.SHARED)
    if at_root and plot_at and draw:
        draw(result, plot_at)


def versions(ways: Sequence[str]) -> dict[str, str]:
    """Of what is measured."""
    found = {"rdmacoll": version("rdmacoll"), "torch": torch.__version__}
    if "grpc" in ways:
        found["grpcio"] = version("grpcio")
    return found


def say(*lines: str) -> None:
    """Rank 0's alone are printed."""
    if dist.get_rank() == ROOT:
        print(*lines, sep="\n", flush=True)
