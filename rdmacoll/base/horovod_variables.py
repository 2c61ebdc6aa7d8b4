"""The variables of Horovod: which are read here, and why others need not be. Pure.

rdmacoll.horovod reads them, and rdmarun has horovodrun's options that set them.
Floor: rdmacoll/base. Thread: any.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

PREFIX: Final = "HOROVOD_"
READ: Final = (
    "HOROVOD_ELASTIC_TIMEOUT",
    "HOROVOD_LOG_LEVEL",
    "HOROVOD_STALL_CHECK_DISABLE",
    "HOROVOD_STALL_CHECK_TIME_SECONDS",
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
    "HOROVOD_TIMELINE",
    "HOROVOD_TIMELINE_MARK_CYCLES",
)
# What no user sets by hand, but a launcher or who made an image: rdmarun sets some of them, too.
SET_BY_OTHERS: Final = (
    "HOROVOD_CROSS_*",
    "HOROVOD_ELASTIC",
    "HOROVOD_GLOO_RENDEZVOUS_*",
    "HOROVOD_HOSTNAME",
    "HOROVOD_LOCAL_*",
    "HOROVOD_RANK",
    "HOROVOD_SECRET_KEY",
    "HOROVOD_SIZE",
    "HOROVOD_VERSION",
)
_BUILD = "only Horovod's build reads them"
_CPU = "tensors are on the CPU"
_FUSION = "short tensors are sent together, long ones without a copy"
_LAYOUT = "the algorithm is chosen by hosts and sizes, or by RDMACOLL_ALGO"
_MPI = "ranks need no MPI"
_OWN = "all operations are rdmacoll's own"
NOT_NEEDED: Final = {
    "HOROVOD_ADASUM_MPI_CHUNK_SIZE": _MPI,
    "HOROVOD_ALLOW_MIXED_GPU_IMPL": _BUILD,
    "HOROVOD_AUTOTUNE*": "`rdmacoll tune` measures before a job, and nothing does while it trains",
    "HOROVOD_BATCH_D2D_MEMCOPIES": _CPU,
    "HOROVOD_BUILD_*": _BUILD,
    "HOROVOD_CACHE_CAPACITY": "ranks remember all names",
    "HOROVOD_CCL_CACHE": _OWN,
    "HOROVOD_CMAKE": _BUILD,
    "HOROVOD_CONTROLLER": _OWN,
    "HOROVOD_CPU_OPERATIONS": _OWN,
    "HOROVOD_CUDA_*": _BUILD,
    "HOROVOD_CYCLE_TIME": "there are no cycles: an operation starts once all ranks want it",
    "HOROVOD_DEBUG": _BUILD,
    "HOROVOD_DISABLE_GROUP_FUSION": _FUSION,
    "HOROVOD_DISABLE_NVTX_RANGES": _CPU,
    "HOROVOD_DYNAMIC_PROCESS_SETS": "process sets can be added in any case",
    "HOROVOD_ENABLE_ASYNC_COMPLETION": _CPU,
    "HOROVOD_ENABLE_XLA_OPS": _CPU,
    "HOROVOD_FUSION_THRESHOLD": _FUSION,
    "HOROVOD_GLOO_IFACE": "RDMACOLL_SOCKET_IFNAME, or rdmarun --network-interfaces, has its place",
    "HOROVOD_GLOO_TIMEOUT_SECONDS": "a lost rank is noticed without it",
    "HOROVOD_GPU*": _CPU,
    "HOROVOD_HIERARCHICAL_*": _LAYOUT,
    "HOROVOD_LOG_HIDE_TIME": "lines have no time",
    "HOROVOD_MPI_THREADS_DISABLE": _MPI,
    "HOROVOD_NCCL_*": _BUILD,
    "HOROVOD_NUM_NCCL_STREAMS": _CPU,
    "HOROVOD_ROCM_*": _BUILD,
    "HOROVOD_SKIP_COMPILE": _BUILD,
    "HOROVOD_SPARK_*": "rdmarun starts the ranks, and not Spark",
    "HOROVOD_START_TIMEOUT": "rdmarun --start-timeout has its place",
    "HOROVOD_THREAD_AFFINITY": "no thread wakes a thousand times a second",
    "HOROVOD_TORUS_ALLREDUCE": _LAYOUT,
    "HOROVOD_WITHOUT_*": _BUILD,
    "HOROVOD_WITH_*": _BUILD,
}
LOG_LEVELS: Final = {  # as RDMACOLL_LOG has them
    "TRACE": "debug",
    "DEBUG": "debug",
    "INFO": "info",
    "WARNING": "warn",
    "ERROR": "error",
    "FATAL": "error",
}


def why_not_needed(name: str) -> str | None:
    """None: it is read here, or is no variable of Horovod."""
    return next((why for known, why in NOT_NEEDED.items() if fnmatchcase(name, known)), None)


def about_variables(environ: Mapping[str, str]) -> list[str]:
    """A line about those that change nothing here, and one about each that is Horovod's nowhere."""
    reasons: dict[str, list[str]] = {}
    lines = []
    for name, value in sorted(environ.items()):
        if not name.startswith(PREFIX) or not value or _is_no_matter(name):
            continue
        if (why := why_not_needed(name)) is not None:
            reasons.setdefault(why, []).append(name)
        else:
            lines.append(f"{name} is no variable of Horovod{_suggestion(name)}")
    if reasons:
        parts = (f"{', '.join(names)} ({why})" for why, names in reasons.items())
        lines.insert(0, f"these variables change nothing here: {'; '.join(parts)}")
    return lines


def _is_no_matter(name: str) -> bool:
    return name in READ or any(fnmatchcase(name, known) for known in SET_BY_OTHERS)


def _suggestion(name: str) -> str:
    """By what is behind the prefix, in which all are alike."""
    rests = [known.removeprefix(PREFIX) for known in READ]
    near = get_close_matches(name.removeprefix(PREFIX).upper(), rests, n=1)
    return f"; did you mean {PREFIX}{near[0]}?" if near else ""
