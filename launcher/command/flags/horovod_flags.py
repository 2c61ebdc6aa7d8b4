"""Options of horovodrun for which there is only a word: what changes nothing here, and what cannot
be had and what is to be given in its place. Pure.

Floor: launcher/command/flags. Thread: any.
"""

from typing import Final

from rdmacoll.base.horovod_variables import NOT_NEEDED as VARIABLES

from .words import Words

_MEET = "ranks meet by rdmarun's agents"
_AUTOTUNE = VARIABLES["HOROVOD_AUTOTUNE*"]
_HIERARCHICAL = VARIABLES["HOROVOD_HIERARCHICAL_*"]
_TORUS = VARIABLES["HOROVOD_TORUS_ALLREDUCE"]
_MPI_THREADS = VARIABLES["HOROVOD_MPI_THREADS_DISABLE"]
_TIMES = VARIABLES["HOROVOD_LOG_HIDE_TIME"]

# How many values each has, and why it changes nothing.
NOT_NEEDED: Final[Words] = {
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
REFUSED: Final[Words] = {
    "--host-discovery-script": (
        1,
        "rdmarun asks for no hosts while a job runs; name them all with -H or --hostfile, and give "
        "--elastic --min-np N --max-restarts M, by which a lost rank, and a lost host, comes back",
    ),
    "--slots-per-host": (1, "give --nproc-per-node N, or say it of each host, as -H node1:4"),
    "--binding-args": (1, "these are mpirun's; give --bind cores or --bind numa"),
    "--tcp": (
        0,
        "set RDMACOLL_TRANSPORT to tcp with -x, which also carries by it what stays on a host",
    ),
    "-v": (0, "rdmarun --version says which one it is"),
}
