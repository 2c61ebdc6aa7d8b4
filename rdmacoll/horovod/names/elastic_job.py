"""The ranks of an elastic job: who they are at init(), and who they are once some are lost or back.

Such a job has torch's default group, which rdmacoll.elastic makes smaller and larger. A world is
made over the ranks that are in it, and another one when these change.
Floor: rdmacoll/horovod/names. Thread: the one that trains.
"""

import datetime
from contextlib import suppress

import torch
import torch.distributed as dist

from rdmacoll.elastic.loop import ADMIT_TIMEOUT, JOIN_TIMEOUT
from rdmacoll.elastic.membership import Joiners, LostElsewhere, Membership
from rdmacoll.elastic.state import NONE_YET
from rdmacoll.failure import backend_of, shrink_group

from .exceptions import HostsUpdatedInterrupt, RanksLostError
from .limits import TIMEOUT, read_seconds

WAIT = "HOROVOD_ELASTIC_TIMEOUT"  # seconds that a rank which comes back waits to be let in


class ElasticJob:
    """This rank's part in it. commits: how many this rank's state has seen."""

    def __init__(self) -> None:
        if dist.is_initialized():
            raise RuntimeError(
                "hvd.elastic.run() makes torch's default group itself, since a rank that comes back"
                " cannot call init_process_group; leave that call out"
            )
        wait_s = read_seconds(WAIT, JOIN_TIMEOUT.total_seconds())
        if wait_s == 0:
            raise ValueError(f"{WAIT}=0: give seconds above 0")
        join_timeout = datetime.timedelta(seconds=wait_s)
        self._membership = Membership(TIMEOUT, join_timeout, ADMIT_TIMEOUT)
        self.commits = NONE_YET if self._membership.is_joiner else 0
        self._furthest = self.commits  # of all ranks
        self._joiners: Joiners | None = None

    @property
    def name(self) -> str:
        """Of the ranks that are in it now; no others have the same."""
        return str(dist.distributed_c10d._get_default_group().group_name)

    def ranks(self) -> list[int]:
        """Of the default group. The first holds the furthest commit, as rank 0's state is taken.

        StateLostError: nobody holds the state any more. RuntimeError: a rank is lost.
        """
        everyones = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
        dist.all_gather(everyones, torch.tensor([self.commits]))
        commits = [int(one.item()) for one in everyones]
        self._furthest = max(commits)
        if self._furthest == NONE_YET:
            raise StateLostError(
                "nobody of the job holds the state any more: all who did are lost; start the job "
                "again, from what it has saved"
            )
        first = commits.index(self._furthest)
        return [first, *(rank for rank in range(len(commits)) if rank != first)]

    def has_state(self) -> None:
        """This rank has the state of the furthest commit: the job can go on with it."""
        self.commits = self._furthest
        self._membership.has_state()

    def look_for_joiners(self) -> None:
        """Raises HostsUpdatedInterrupt, on all ranks, if somebody waits to be let in.

        RanksLostError: a rank is lost, or has begun anew.
        """
        try:
            self._membership.look_for_joiners()
        except Joiners as joiners:
            self._joiners = joiners.with_traceback(None)  # which holds the old group
            raise HostsUpdatedInterrupt from None
        except dist.DistError as error:
            raise RanksLostError(str(error)) from error

    def grow(self) -> None:
        """Lets in who was found, if somebody was. RuntimeError: a rank is lost."""
        joiners, self._joiners = self._joiners, None
        if joiners is not None:
            self._membership.grow(joiners)

    def shrink(self) -> None:
        """Leaves out who is lost. All that are left call it, wherever they were."""
        self._joiners = None
        with suppress(RuntimeError):  # it has failed already
            backend_of(None).abort()  # else who waits in it for this rank would not come
        shrink_group()

    def end(self) -> None:
        """Returns on all ranks or on none; RanksLostError if one is lost."""
        try:
            self._membership.end(self.name)
        except (dist.DistError, LostElsewhere) as error:
            raise RanksLostError(str(error)) from error


class StateLostError(Exception):
    """The job cannot go on."""


_job: ElasticJob | None = None


def current_job() -> ElasticJob | None:
    """None: the job is not elastic, or nobody has asked yet."""
    return _job


def take_part() -> ElasticJob:
    """All ranks of the job call it for the first time together."""
    global _job
    if _job is None:
        _job = ElasticJob()
    return _job
