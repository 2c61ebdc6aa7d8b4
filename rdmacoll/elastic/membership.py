"""The group of an elastic job, as a member sees it: made, made larger, made smaller, ended."""

import datetime
import logging
import os

import torch
import torch.distributed as dist

from rdmacoll.base.agent_protocol import JOINS

from .._agent import own_agent
from ..failure import dead_ranks, shrink_group
from .grown import make_backend, put_in_place
from .join_board import JoinBoard
from .joiner import join, tell_agent

log = logging.getLogger("rdmacoll.elastic")


class Joiners(BaseException):
    """Leaves train() at a commit, through whatever catches errors there: ranks are to be let in."""

    def __init__(self, generation: int, requests: list[int]) -> None:
        super().__init__("joiners are let in")
        self.generation = generation
        self.requests = requests


class LostElsewhere(RuntimeError):
    """Another rank has seen a loss where this one has not."""


def role() -> str | None:
    """Of this rank in a job whose lost ranks are started again: STARTS or JOINS; None: in no such.

    A child of a rank is no rank, and inherits the variable.
    """
    return os.environ.get("RDMACOLL_ELASTIC") if own_agent() is not None else None


class Membership:
    """From the first group to the end of the training."""

    def __init__(
        self,
        timeout: datetime.timedelta,
        join_timeout: datetime.timedelta,
        admit_timeout: datetime.timedelta,
    ) -> None:
        agent = own_agent()
        said = role()
        self.is_joiner = said == JOINS
        self._timeout = timeout
        self._admit_timeout = admit_timeout
        self._board = JoinBoard(agent, timeout) if agent is not None and said is not None else None
        self._generation = 0
        if self._board is None:
            dist.init_process_group("rdma", timeout=timeout)
        elif self.is_joiner:
            self._generation = join(self._board, timeout, join_timeout, admit_timeout)
        else:
            dist.init_process_group(
                "rdma",
                # Its own, as torch's has the number of the restart in it, which may differ.
                store=self._board.store_of(0),
                rank=int(os.environ["RANK"]),
                world_size=int(os.environ["WORLD_SIZE"]),
                timeout=timeout,
            )

    def has_state(self) -> None:
        """This rank is one of those that the job can go on with."""
        if self.is_joiner:
            tell_agent()
            self.is_joiner = False

    def look_for_joiners(self) -> None:
        """Raises Joiners, on all ranks, if somebody waits to be let in."""
        if self._board is None:
            return
        requests = self._board.who_is_here() if dist.get_rank() == 0 else []
        generation = self._board.new_generation() if requests else 0
        found = torch.tensor([generation, len(requests)])
        dist.broadcast(found, 0)
        generation, count = found.tolist()
        if count == 0:
            return
        if generation <= self._generation:  # its keys in the Store may hold an earlier one's words
            raise RuntimeError(
                f"the job's Store counts generation {generation} after {self._generation}: "
                "somebody who is not of this job writes into it"
            )
        self._generation = generation
        which = torch.tensor(requests) if requests else torch.zeros(count, dtype=torch.int64)
        dist.broadcast(which, 0)
        raise Joiners(generation, which.tolist())

    def grow(self, joiners: Joiners) -> None:
        """Puts a group with the joiners in the place of this one, or lets it stand.

        RuntimeError as from an operation, if a member is lost.
        """
        board, generation = self._board, joiners.generation
        assert board is not None
        dist.barrier()  # else who has seen no loss would wait for one who has
        rank, members = dist.get_rank(), dist.get_world_size()
        size = members + len(joiners.requests)
        if rank == 0:
            for index, request in enumerate(joiners.requests):
                board.assign(request, generation, members + index, size)
        store, backend = board.store_of(generation), None
        failure: RuntimeError | None = None
        loss: RuntimeError | None = None
        try:
            backend = make_backend(store, generation, rank, size, self._admit_timeout)
        except RuntimeError as error:
            failure = error
        made = torch.tensor([int(backend is not None)])
        try:
            dist.all_reduce(made, op=dist.ReduceOp.MIN)
        except RuntimeError as error:
            loss = error
        # Who has lost a member here may be the only one who has, so all ask the same judge. The
        # answer is yes only where somebody knows that all members have made the larger group.
        if board.decide(f"generation {generation}", loss is None and bool(made.item())):
            assert backend is not None
            put_in_place(backend, store, generation, self._timeout)
            return
        if backend is not None:
            backend.shutdown()
        if loss is not None:
            raise loss
        if rank == 0:
            lost = size - members
            log.warning("lost again before they were let in: %d of %d (%s)", lost, size, failure)

    def shrink(self, error: RuntimeError) -> None:
        """A group of those that are left; raises the error again if it is of another kind."""
        if not dead_ranks() and not isinstance(error, LostElsewhere):
            raise error
        shrink_group()

    def end(self, which: str) -> None:
        """Returns on all ranks or on none; RuntimeError if a member is lost.

        which: that no other end of this job is called
        """
        loss: RuntimeError | None = None
        try:
            dist.barrier()
        except RuntimeError as error:
            loss = error
        if self._board is None:
            if loss is not None:
                raise loss
            return
        if not self._board.decide(f"end {which}", loss is None):
            raise loss or LostElsewhere("a rank was lost as the training ended")
        self._board.say_over()
