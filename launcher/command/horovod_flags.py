"""Options of horovodrun for which there is only a word: what changes nothing here, and what cannot
be had and what is to be given in its place. Pure.

Floor: launcher/command. Thread: any.
"""

import textwrap
from collections.abc import Sequence
from typing import Final

from rdmacoll.base.horovod_variables import NOT_NEEDED as VARIABLES

_MEET = "ranks meet by rdmarun's agents"
_AUTOTUNE = VARIABLES["HOROVOD_AUTOTUNE*"]
_HIERARCHICAL = VARIABLES["HOROVOD_HIERARCHICAL_*"]
_TORUS = VARIABLES["HOROVOD_TORUS_ALLREDUCE"]
_MPI_THREADS = VARIABLES["HOROVOD_MPI_THREADS_DISABLE"]
_TIMES = VARIABLES["HOROVOD_LOG_HIDE_TIME"]
_NO_TIMES = "rdmarun puts no times before lines; pipe its output through `ts`, which does"

# How many values each has, and why it changes nothing.
NOT_NEEDED: Final = {
    "--gloo": (0, _MEET),
    "--mpi": (0, _MEET),
    "--jsrun": (0, _MEET),
    "--disable-cache": (0, "rdmarun keeps no checks of hosts from one job to the next"),
    "--fusion-threshold-mb": (1, VARIABLES["HOROVOD_FUSION_THRESHOLD"]),
    "--cycle-time-ms": (1, VARIABLES["HOROVOD_CYCLE_TIME"]),
    "--cache-capacity": (1, VARIABLES["HOROVOD_CACHE_CAPACITY"]),
    "--hierarchical-allreduce": (0, _HIERARCHICAL),
    "--no-hierarchical-allreduce": (0, _HIERARCHICAL),
    "--hierarchical-allgather": (0, _HIERARCHICAL),
    "--no-hierarchical-allgather": (0, _HIERARCHICAL),
    "--torus-allreduce": (0, _TORUS),
    "--no-torus-allreduce": (0, _TORUS),
    "--autotune": (0, _AUTOTUNE),
    "--no-autotune": (0, _AUTOTUNE),
    "--autotune-log-file": (1, _AUTOTUNE),
    "--autotune-warmup-samples": (1, _AUTOTUNE),
    "--autotune-steps-per-sample": (1, _AUTOTUNE),
    "--autotune-bayes-opt-max-samples": (1, _AUTOTUNE),
    "--autotune-gaussian-process-noise": (1, _AUTOTUNE),
    "--blacklist-cooldown-range": (
        2,
        "no host is left out: a lost rank comes back where it was",
    ),
    "--mpi-threads-disable": (0, _MPI_THREADS),
    "--no-mpi-threads-disable": (0, _MPI_THREADS),
    "--num-nccl-streams": (1, VARIABLES["HOROVOD_NUM_NCCL_STREAMS"]),
    "--thread-affinity": (1, VARIABLES["HOROVOD_THREAD_AFFINITY"]),
    "--gloo-timeout-seconds": (1, VARIABLES["HOROVOD_GLOO_TIMEOUT_SECONDS"]),
    "--log-with-timestamp": (0, _TIMES),
    "--log-without-timestamp": (0, _TIMES),
    "--log-hide-timestamp": (0, _TIMES),
    "--no-log-hide-timestamp": (0, _TIMES),
}
# How many values each has, and what to do without it.
REFUSED: Final = {
    "--host-discovery-script": (
        1,
        "rdmarun asks for no hosts while a job runs; name them all with -H or --hostfile, and give "
        "--elastic --min-np N --max-restarts M, by which a lost rank, and a lost host, comes back",
    ),
    "--config-file": (1, "rdmarun reads no such file; give as options what it says"),
    "--slots-per-host": (1, "say it of each host, as -H node1:4,node2:4, or in the --hostfile"),
    "--binding-args": (
        1,
        "rdmarun binds no rank to cores; call os.sched_setaffinity() in the script, by LOCAL_RANK",
    ),
    "--prefix-output-with-timestamp": (0, _NO_TIMES),
    "-prefix-timestamp": (0, _NO_TIMES),
    "--tcp": (
        0,
        "set RDMACOLL_TRANSPORT to tcp with -x, which also carries by it what stays on a host",
    ),
    "-v": (0, "rdmarun --version says which one it is"),
}


def about_not_needed(flags: Sequence[str]) -> list[str]:
    """A line for each reason."""
    reasons: dict[str, list[str]] = {}
    for flag in dict.fromkeys(flags):
        reasons.setdefault(NOT_NEEDED[flag][1], []).append(flag)
    return [
        f"{', '.join(ones)} {'changes' if len(ones) == 1 else 'change'} nothing: {why}"
        for why, ones in reasons.items()
    ]


def help_text() -> str:
    """They are too many to have lines of their own."""
    nothing = f"These change nothing, and it is said why: {', '.join(NOT_NEEDED)}."
    refused = f"These are errors that say what to give instead: {', '.join(REFUSED)}."
    return "\n".join(textwrap.fill(text, 78, break_on_hyphens=False) for text in (nothing, refused))
