"""Runs scripts as users do: plain `python script` processes with the launcher's variables set.

For what a forked rank cannot show: importing torch, and leaving the interpreter.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch.distributed as dist
from world import LOOPBACK, host_store

DEADLINE_S = 120


@dataclass
class Finished:
    code: int
    output: str


def run_ranks(script: str | Path, size: int, *arguments: str) -> list[Finished]:
    """`script` is a file, or source."""
    store = host_store()
    processes = start_ranks(store, script, size, *arguments)
    return [finish(process) for process in processes]


def start_ranks(
    store: dist.TCPStore,
    script: str | Path,
    size: int,
    *arguments: str,
    ranks: Iterable[int] = (),
    **variables: str,
) -> list[subprocess.Popen[str]]:
    """ranks: only these, for others to be started with other variables."""
    processes = []
    for rank in ranks or range(size):
        environment = {
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(size),
            "LOCAL_WORLD_SIZE": str(size),
            "MASTER_ADDR": LOOPBACK,
            "MASTER_PORT": str(store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            **variables,
        }
        what = [str(script)] if isinstance(script, Path) else ["-c", script]
        processes.append(
            subprocess.Popen(
                [sys.executable, *what, *arguments],
                env=environment,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        )
    return processes


def finish(process: subprocess.Popen[str]) -> Finished:
    try:
        output, _ = process.communicate(timeout=DEADLINE_S)
        return Finished(process.returncode, output)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        return Finished(-1, f"did not end in {DEADLINE_S} s\n{output}")


def run_python(source: str) -> Finished:
    process = subprocess.Popen(
        [sys.executable, "-c", source],
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return finish(process)
