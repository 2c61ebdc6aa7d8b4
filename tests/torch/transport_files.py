"""torch.distributed._transport for tests: torch's own where it has one (from 2.15 on), or else that
of 2.15 by itself, which older versions can import. It is downloaded once, with the headers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import torch.distributed as dist

VERSION = "2.15.0"
REPO = Path(__file__).parents[2]


def provide() -> None:
    """From then on it can be imported."""
    if importlib.util.find_spec("torch.distributed._transport") is not None:
        return
    folder = subprocess.run(
        [".ci/torch-files", VERSION, sys.executable],
        cwd=REPO,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    ).stdout.strip()
    dist.__path__.append(str(REPO / folder / "torch/distributed"))
