"""The hosts and slots of a Slurm job: in a batch script, in salloc's shell, or in a step.

Floor: launcher/command/allocation. Thread: any.
"""

from collections.abc import Mapping

from rdmacoll.launcher.base.hosts import Host, HostError, checked_host

from rdmacoll.base.slurm_lists import expand_counts, expand_hosts

from .host_list_file import Read

SAID_CHARACTERS = 200  # of a value, in an error
HOST_LISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")


def job(environ: Mapping[str, str]) -> str | None:
    number = environ.get("SLURM_JOB_ID") or environ.get("SLURM_JOBID")
    return f"Slurm job {number}" if number else None


def hosts(environ: Mapping[str, str], _: Read) -> list[Host]:
    _check_started_once(environ)
    listed_by = next((name for name in HOST_LISTS if environ.get(name)), None)
    if listed_by is None:
        raise HostError(
            "SLURM_JOB_NODELIST: is not set, though SLURM_JOB_ID is; name the hosts with -H"
        )
    said_hosts = _said(environ, listed_by)
    try:
        names = expand_hosts(environ[listed_by])
    except ValueError as error:
        raise HostError(f"{said_hosts}: {error}") from None
    counted_by, slots = _slots(environ)
    if len(slots) != len(names):
        raise HostError(
            f"{_said(environ, counted_by)}: counts {len(slots)} hosts, but {said_hosts} "
            f"names {len(names)}"
        )
    return [checked_host(name, count, said_hosts) for name, count in zip(names, slots, strict=True)]


def _check_started_once(environ: Mapping[str, str]) -> None:
    tasks = environ.get("SLURM_STEP_NUM_TASKS", "1")
    if "SLURM_STEP_ID" in environ and tasks != "1":
        raise HostError(
            f"SLURM_STEP_NUM_TASKS={tasks}: srun starts rdmarun so many times, and each would "
            "start all ranks; start it once: without srun, or with `srun -N1 -n1`"
        )


def _slots(environ: Mapping[str, str]) -> tuple[str, list[int]]:
    """The variable that says how many slots each host has, and what it says.

    In a step the numbers of tasks are the step's. So the job's CPUs count there.
    """
    in_step = "SLURM_STEP_ID" in environ
    if not in_step and environ.get("SLURM_TASKS_PER_NODE"):
        return "SLURM_TASKS_PER_NODE", _counts(environ, "SLURM_TASKS_PER_NODE")
    cpus = _counts(environ, "SLURM_CPUS_PER_TASK")[0] if environ.get("SLURM_CPUS_PER_TASK") else 1
    for name in "SLURM_JOB_CPUS_PER_NODE", "SLURM_CPUS_ON_NODE":
        if environ.get(name):
            return name, [max(1, count // cpus) for count in _counts(environ, name)]
    raise HostError(
        "SLURM_JOB_CPUS_PER_NODE: is not set, though SLURM_JOB_ID is; name the hosts and their "
        "slots with -H"
    )


def _counts(environ: Mapping[str, str], name: str) -> list[int]:
    try:
        return expand_counts(environ[name])
    except ValueError as error:
        raise HostError(f"{_said(environ, name)}: {error}") from None


def _said(environ: Mapping[str, str], name: str) -> str:
    return f"{name}={environ[name][:SAID_CHARACTERS]}"
