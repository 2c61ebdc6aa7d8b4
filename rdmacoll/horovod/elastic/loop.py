"""run(): trains with whoever is there, until it is through.

Floor: rdmacoll/horovod/elastic. Thread: the one that trains.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from rdmacoll.failure import DeadRankError
from rdmacoll.horovod.names import world
from rdmacoll.horovod.names.elastic_job import ElasticJob, take_part
from rdmacoll.horovod.names.exceptions import (
    HorovodInternalError,
    HostsUpdatedInterrupt,
    RanksLostError,
)

from .state import State


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates func(state, ...), which trains: it is called again whenever ranks change.

    After a lost rank all that are left restore their last commit; ranks that come back are let in
    at a commit. Then sizes and ranks are others, callbacks of the state have been called, and all
    have the state of the rank that has got furthest, which is rank 0 from then on. Outside of it
    nothing is caught. An operation that fails although no rank is lost is a mistake of the script,
    and raised.

    It needs hvd.init(), of all ranks of the job, and makes torch's default group; what was made of
    hvd before, but for a DistributedOptimizer, ends with its ranks: process sets and handles.

    Raises ValueError before init(), RuntimeError where somebody else has made the default group,
    StateLostError where all are lost who held the state, and what func raises.
    """

    @functools.wraps(func)
    def train(state: State, *args: Any, **kwargs: Any) -> Any:
        everyone = world.current().meeting.ranks
        if world.size() != len(everyone):
            raise ValueError(
                f"hvd.init(comm=...) has left out ranks of this job, which has {len(everyone)}; an "
                "elastic job has all: leave comm out"
            )
        if len(everyone) == 1 and "RANK" not in os.environ:  # alone: there is nobody to lose
            state.sync()
            return func(state, *args, **kwargs)
        return _train(take_part(), state, lambda: func(state, *args, **kwargs))

    return train


def _train(job: ElasticJob, state: State, func: Callable[[], Any]) -> Any:
    while True:
        try:
            state.sync()
            job.has_state()
            result = func()
            job.end()
            return result
        except HorovodInternalError as error:
            if _is_mistake(error):
                raise
            state.restore()
            is_loss = True
        except HostsUpdatedInterrupt:
            is_loss = False
        _change_ranks(job, is_loss)
        state.on_reset()


def _is_mistake(error: HorovodInternalError) -> bool:
    """Of the script. What it raises itself, to begin anew, has no cause."""
    if isinstance(error, RanksLostError) or error.__cause__ is None:
        return False
    return not isinstance(error.__cause__, DeadRankError)


def _change_ranks(job: ElasticJob, is_loss: bool) -> None:
    world.shutdown()  # others hear of it, wherever they wait
    attempts = dist.get_world_size()  # each of which has lost one more, if it fails
    while True:
        if is_loss:
            job.shrink()
        try:
            job.grow()
            world.init()
            return
        except RuntimeError:
            world.shutdown()
            is_loss, attempts = True, attempts - 1
            if attempts < 0:
                raise
