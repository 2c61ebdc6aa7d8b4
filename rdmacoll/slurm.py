"""For `srun python train.py`: torch's variables from those that Slurm sets for each task.

Floor: rdmacoll. Thread: the main one, before the first process group.
"""

import os
import re
from collections.abc import Callable, Mapping, MutableMapping
from typing import TypeVar

from .base.slurm_lists import expand_counts, expand_hosts

# Below the ports that Linux gives to outgoing connections, from 32768 on.
PORTS = range(20000, 32000)
SAID_CHARACTERS = 200  # of a value, in an error
T = TypeVar("T")
TASK = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_NUM_TASKS")


def env_from_slurm(environ: MutableMapping[str, str] = os.environ) -> None:
    """Sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT.

    Call it before init_process_group. Under rdmarun and torchrun, which set RANK and WORLD_SIZE,
    it changes nothing, so a script may be started in each way. MASTER_ADDR and MASTER_PORT are
    kept where they are set; otherwise they are the step's first host, and a port that Slurm has
    reserved (srun --resv-ports) or else one that follows from the numbers of job and step.

    RuntimeError outside of a step of Slurm, and where a variable of it cannot be read.
    """
    if "RANK" in environ and "WORLD_SIZE" in environ:
        return
    if "SLURM_STEP_ID" not in environ:
        raise RuntimeError(
            "rdmacoll.env_from_slurm(): SLURM_STEP_ID is not set, so this is no task of Slurm's; "
            "start it with `srun python ...`, with rdmarun or with torchrun"
        )
    rank, local_rank, node, world = (_whole(environ, name) for name in TASK)
    tasks = _expanded(environ, "SLURM_STEP_TASKS_PER_NODE", expand_counts)
    hosts = _expanded(environ, "SLURM_STEP_NODELIST", expand_hosts)
    if node >= len(tasks):
        raise _wrong("SLURM_STEP_TASKS_PER_NODE", environ, f"it counts no task of node {node}")
    ours = {
        "RANK": rank,
        "WORLD_SIZE": world,
        "LOCAL_RANK": local_rank,
        "LOCAL_WORLD_SIZE": tasks[node],
        "MASTER_ADDR": environ.get("MASTER_ADDR") or hosts[0],
        "MASTER_PORT": environ.get("MASTER_PORT") or _port(environ),
    }
    environ.update({name: str(value) for name, value in ours.items()})


def _port(environ: Mapping[str, str]) -> int:
    """The same in all tasks of a step, and mostly another one in other steps."""
    if reserved := environ.get("SLURM_STEP_RESV_PORTS"):
        match = re.match(r"[0-9]{1,5}", reserved)
        if match is None:
            raise _wrong("SLURM_STEP_RESV_PORTS", environ, "it begins with no port")
        return int(match[0])
    job, step = _whole(environ, "SLURM_JOB_ID"), _whole(environ, "SLURM_STEP_ID")
    return PORTS[(16 * job + step) % len(PORTS)]


def _whole(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= 10):
        raise _wrong(name, environ, "it is no whole number")
    return int(text)


def _expanded(environ: Mapping[str, str], name: str, expand: Callable[[str], list[T]]) -> list[T]:
    try:
        return expand(environ.get(name, ""))
    except ValueError as error:
        raise _wrong(name, environ, str(error)) from None


def _wrong(name: str, environ: Mapping[str, str], why: str) -> RuntimeError:
    said = f"{name}={environ[name][:SAID_CHARACTERS]}" if name in environ else f"{name} is not set"
    return RuntimeError(
        f"rdmacoll.env_from_slurm(): {said}: {why}; srun sets it for each task, so set RANK, "
        "WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT yourself where it does not"
    )
