"""What init() makes of Horovod's variables, but for those that have a place of their own.

Which there are: rdmacoll/base/horovod_variables.py.
Floor: rdmacoll/horovod/names. Thread: the one that calls init().
"""

import os
import sys

import torch.distributed as dist

from rdmacoll.base.horovod_variables import LOG_LEVELS, about_variables

LEVEL = "HOROVOD_LOG_LEVEL"
OWN_LEVEL = "RDMACOLL_LOG"
HOROVODRUNS = "HOROVOD_GLOO_RENDEZVOUS_ADDR"  # horovodrun tells its ranks so where they meet

_is_said = False


def take_log_level() -> None:
    """For groups that are made from now on; RDMACOLL_LOG, where it is set, says more.

    Raises ValueError for a level that Horovod does not have.
    """
    text = os.environ.get(LEVEL, "")
    if not text:
        return
    if text.upper() not in LOG_LEVELS:
        raise ValueError(f"{LEVEL}={text!r}: give one of {', '.join(LOG_LEVELS)}")
    os.environ.setdefault(OWN_LEVEL, LOG_LEVELS[text.upper()])


def refuse_horovodrun() -> None:
    """Raises RuntimeError under horovodrun: each of its ranks would be a world by itself."""
    if HOROVODRUNS in os.environ and "RANK" not in os.environ and not dist.is_initialized():
        raise RuntimeError(
            "horovodrun has started this rank, and rdmacoll's ranks do not meet by it; start the "
            f"script with rdmarun --horovod -np {os.environ.get('HOROVOD_SIZE', 'N')}"
        )


def say_once(rank: int) -> None:
    """Rank 0 says which variables change nothing, at its first init(); below warnings nobody."""
    global _is_said
    is_first, _is_said = not _is_said, True
    if not is_first or rank != 0 or os.environ.get(OWN_LEVEL) == "error":
        return
    for line in about_variables(os.environ):
        print(f"rdmacoll.horovod: {line}", file=sys.stderr)
