"""Runs a recipe on two ranks as a user does, and reads what the ranks say of it.

Floor: tests.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from namespaces import in_namespace

RECIPES = Path(__file__).parent / "recipes"
LIMIT_S = 240  # for one run; some libraries take long to import
EXTENSIONS = tempfile.TemporaryDirectory()  # what DeepSpeed compiles; it goes with this process
ALWAYS = {
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TORCH_EXTENSIONS_DIR": EXTENSIONS.name,
}
RDMARUN = [sys.executable, "-m", "rdmacoll.launcher", "-np", "2"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]


@dataclass(frozen=True)
class Rank:
    values: list[float]
    runs_on: str
    named: str


@dataclass(frozen=True)
class Run:
    ranks: list[Rank]
    output: str


def start(command: list[str], *, ends_well: bool = True, **env: str) -> Run:
    """ends_well: it must; else it must have said its results."""
    environ = os.environ | ALWAYS | env
    finished = subprocess.run(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    ended = f"{command}: {finished.returncode}\n{finished.stdout}"
    assert finished.returncode == 0 or not ends_well, ended
    found = [line.partition("RESULT ")[2] for line in finished.stdout.splitlines()]
    said = sorted((json.loads(line) for line in found if line), key=lambda one: int(one["rank"]))
    for rank in said:
        del rank["rank"]
    return Run([Rank(**rank) for rank in said], finished.stdout)


def ranks_of(source: str, *options: str) -> Run:
    """Two of them, unless the options say otherwise, run this source."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        script.write_text(source)
        return start([*RDMARUN, *options, str(script)])


def launcher(name: str) -> list[str]:
    """Ray starts its workers itself, and listens on all networks: it gets one of its own."""
    if name != "ray_train":
        return RDMARUN
    alone = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable]
    return [*in_namespace("net"), *alone]


def recipe(name: str) -> str:
    return str(RECIPES / f"{name}.py")


@cache
def control(name: str) -> list[Rank]:
    """What torch's own gloo makes of it.

    A thread of gloo that still holds a tensor when Python ends aborts the process, now and then.
    """
    run = start([*launcher(name), recipe(name), "gloo"], ends_well=False)
    assert [rank.runs_on for rank in run.ranks] == ["ProcessGroupGloo"] * 2, run.output
    ranks = run.ranks
    return ranks
