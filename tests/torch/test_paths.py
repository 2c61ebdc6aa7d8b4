"""Over what each rank is reached, and why."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import Any

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed

WITHOUT_WAITING_S = 60  # groups have half an hour


def paths(group: Any = None) -> Any:
    """Of every other rank: its number, what carries data to it, and why that."""
    of_group: Any = dist.group.WORLD if group is None else group
    return of_group._get_backend(torch.device("cpu"))._paths()


@distributed(1, 4, fresh=True, gloo_lacks="has no paths", one_host=True)
def test_ranks_of_one_host_share_memory() -> None:
    rank, world = me()
    others = [peer for peer in range(world) if peer != rank]
    assert paths() == [(peer, "shm", "same host") for peer in others]


@distributed(4, gloo_lacks="has no paths")
def test_a_subgroup_names_its_own_ranks() -> None:
    rank, _ = me()
    group = dist.new_group([1, 3])
    if rank in (1, 3):
        assert [peer for peer, _, _ in paths(group)] == [1 if rank == 1 else 0]
        dist.destroy_process_group(group)


@distributed(2, init=False, gloo_lacks="has no paths", one_host=True)
def test_a_setting_is_given_as_the_reason() -> None:
    os.environ["RDMACOLL_TRANSPORT"] = "shm"
    dist.init_process_group("rdma")
    assert [path[1:] for path in paths()] == [("shm", "RDMACOLL_TRANSPORT=shm")]
    dist.destroy_process_group()


@distributed(2, init=False, gloo_lacks="has no transports to choose from")
def test_ranks_must_agree_on_the_transport() -> None:
    rank = int(os.environ["RANK"])
    os.environ["RDMACOLL_TRANSPORT"] = ("auto", "shm")[rank]
    with pytest.raises(
        RuntimeError, match=f"rank {1 - rank} runs with another.*RDMACOLL_TRANSPORT"
    ):
        dist.init_process_group("rdma")


@distributed(2, init=False, gloo_lacks="has no transports to choose from")
def test_a_rank_that_cannot_take_part_tells_the_others() -> None:
    rank = int(os.environ["RANK"])
    os.environ["RDMACOLL_TRANSPORT"] = ("auto", "pigeons")[rank]
    began = time.monotonic()
    says = "RDMACOLL_TRANSPORT='pigeons'"
    with pytest.raises(RuntimeError, match=says if rank == 1 else f"rank 1.*take part.*{says}"):
        dist.init_process_group("rdma")
    assert time.monotonic() - began < WITHOUT_WAITING_S


def narrow_the_ports() -> contextlib.ExitStack:
    """Leaves this rank no port that it may listen on: another socket has the only one."""
    held = contextlib.ExitStack()
    taken = held.enter_context(socket.create_server(("0.0.0.0", 0)))
    os.environ["RDMACOLL_TCP_PORTS"] = str(taken.getsockname()[1])
    return held


NO_PORT = "tcp: no port from .* is free at .*RDMACOLL_TCP_PORTS"


@distributed(2, init=False, gloo_lacks="has no transports to choose from", one_host=True)
def test_who_needs_no_tcp_needs_no_port() -> None:
    with narrow_the_ports():
        dist.init_process_group("rdma")
        assert [path[1:] for path in paths()] == [("shm", "same host")]
        dist.destroy_process_group()


@distributed(2, init=False, gloo_lacks="has no transports to choose from", one_host=True)
def test_who_needs_tcp_hears_that_it_has_no_port() -> None:
    rank = int(os.environ["RANK"])
    os.environ["RDMACOLL_HOST_ID"] = f"host{rank}"
    says = f"reaches host 'host{1 - rank}'.*{NO_PORT}"
    with narrow_the_ports(), pytest.raises(RuntimeError, match=says):
        dist.init_process_group("rdma")


@distributed(2, init=False, gloo_lacks="has no transports to choose from", one_host=True)
def test_tcp_for_all_is_an_error_at_once_without_a_port() -> None:
    os.environ["RDMACOLL_TRANSPORT"] = "tcp"
    with narrow_the_ports(), pytest.raises(RuntimeError, match="no port from .* is free at"):
        dist.init_process_group("rdma")


@distributed(2, init=False, gloo_lacks="has no transports to choose from")
def test_what_is_required_and_missing_is_named() -> None:
    rank = int(os.environ["RANK"])
    os.environ |= {
        "RDMACOLL_HOST_ID": f"host{rank}",
        "RDMACOLL_TRANSPORT": "shm",
        "RDMACOLL_REQUIRE": "verbs",
    }
    with pytest.raises(RuntimeError, match=f"RDMACOLL_REQUIRE=verbs.*'host{1 - rank}'"):
        dist.init_process_group("rdma")
