"""A rank that was started again: how it gets into the group of the others."""

import datetime
import time
from typing import TYPE_CHECKING

import torch.distributed as dist

from rdmacoll.base.agent_protocol import tell_joined

from .._agent import own_agent
from .._create import leave_agent_out
from .grown import make_backend, put_in_place
from .join_board import JoinBoard, TrainingIsOver

if TYPE_CHECKING:
    from .._C import RdmaBackend

ATTEMPTS = 3  # so often it tries: others who come with it may be lost on the way


class Finished(SystemExit):
    """The training was over before this rank, started again, could join; its status is 0."""

    def __init__(self) -> None:
        super().__init__(0)


def join(
    board: JoinBoard,
    timeout: datetime.timedelta,
    join_timeout: datetime.timedelta,
    admit_timeout: datetime.timedelta,
) -> int:
    """Makes this rank a member of the default group, and returns the group's generation."""
    # Alone it is a group of one, which the larger one replaces as it does the others'.
    leave_agent_out()
    dist.init_process_group("rdma", store=dist.HashStore(), rank=0, world_size=1, timeout=timeout)
    began = time.monotonic()
    try:
        deadline = began + join_timeout.total_seconds()
        backend, generation = _take_rank(board, admit_timeout, deadline)
    except TrainingIsOver:
        dist.destroy_process_group()
        raise Finished from None
    except TimeoutError as error:
        raise TimeoutError(
            f"this rank was started again, and the others have not let it in within join_timeout="
            f"{join_timeout.total_seconds():g} s ({error}); they do so in state.commit(): call it "
            "more often, or give run() a longer join_timeout"
        ) from None
    put_in_place(backend, board.store_of(generation), generation, timeout)
    return generation


def tell_agent() -> None:
    """From now on rdmarun counts this rank among those that are left."""
    agent = own_agent()
    assert agent is not None  # a joiner has one (Membership)
    rank = agent.identity.rank
    assert rank is not None
    tell_joined(agent.address, rank, agent.identity.world)


def _take_rank(
    board: JoinBoard, admit_timeout: datetime.timedelta, deadline: float
) -> tuple["RdmaBackend", int]:
    """This rank's part of a generation that is the group from now on."""
    failure: RuntimeError | None = None
    for _ in range(ATTEMPTS):
        request = board.request()
        board.answer_call(request, deadline)
        generation, rank, size = board.wait_for_rank(request, deadline)
        store = board.store_of(generation)
        try:
            backend = make_backend(store, generation, rank, size, admit_timeout)
        except RuntimeError as error:
            failure = error
            continue
        if board.wait_for_decision(f"generation {generation}", deadline):
            return backend, generation
        backend.shutdown()
    raise RuntimeError(
        f"this rank was started again, and {ATTEMPTS} times no group with it could be made"
    ) from failure
