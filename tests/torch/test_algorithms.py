"""Which algorithm a group takes: Options(algorithm=...), RDMACOLL_ALGO and RDMACOLL_TUNING."""

from __future__ import annotations

import contextlib
import copy
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from cases import check, me, values
from harness import distributed
from world import GROUP_TIMEOUT

import rdmacoll

LACKS = "has no algorithms to choose from"
NAMES = ("ring", "tree", "halving_doubling", "one_shot", "two_shot", "direct")
LARGE = 1 << 30


def taken(group: Any = None, collective: str = "all_reduce", size_bytes: int = LARGE) -> str:
    of_group: Any = dist.group.WORLD if group is None else group
    return of_group._get_backend(torch.device("cpu"))._algorithm(collective, size_bytes)


@contextlib.contextmanager
def table(text: str) -> Iterator[str]:
    """RDMACOLL_TUNING is the path of a file with this text."""
    with tempfile.NamedTemporaryFile("w", prefix="tuning") as file:
        file.write(text)
        file.flush()
        os.environ["RDMACOLL_TUNING"] = file.name
        yield file.name


def test_options_explain_themselves() -> None:
    for public in (rdmacoll.Options, rdmacoll.RdmaBackend):
        assert public.__doc__
    assert "algorithm" in str(rdmacoll.Options.__doc__)


def test_options_are_checked() -> None:
    says = "algorithm='rings' is not valid; use one of auto, .*, rails, leaders or unset it"
    with pytest.raises(ValueError, match=says):
        rdmacoll.Options(algorithm="rings")
    options = rdmacoll.Options(algorithm="ring")
    assert options.algorithm == "ring"
    assert copy.copy(options).algorithm == copy.deepcopy(options).algorithm == "ring"
    assert rdmacoll.Options().algorithm == ""


@distributed(2, 3, gloo_lacks=LACKS, one_host=True)
def test_an_algorithm_per_group() -> None:
    rank, world = me()
    expected = sum(values(peer, 5003, torch.float32) for peer in range(world))
    assert isinstance(expected, torch.Tensor)
    for name in NAMES:
        group = dist.new_group(pg_options=rdmacoll.Options(algorithm=name))
        assert taken(group) == taken(group, size_bytes=4) == name
        tensor = values(rank, 5003, torch.float32)
        dist.all_reduce(tensor, group=group)
        check(tensor, expected, "all_reduce by", name)
        dist.destroy_process_group(group)
    assert taken() == "two_shot"


@distributed(2, gloo_lacks=LACKS, one_host=True)
def test_where_it_does_not_exist_the_choice_is_as_usual() -> None:
    group = dist.new_group(pg_options=rdmacoll.Options(algorithm="direct"))
    assert taken(group, "all_gather") == "direct"
    assert taken(group, "reduce") == taken(collective="reduce") == "two_shot"
    dist.destroy_process_group(group)


@distributed(2, gloo_lacks=LACKS)
def test_what_is_split_off_inherits_the_algorithm() -> None:
    parent: Any = dist.new_group(pg_options=rdmacoll.Options(algorithm="ring"))
    name = "split of a ring"
    split = parent.split_group([0, 1], timeout=GROUP_TIMEOUT, group_name=name)
    assert taken(split) == "ring"
    split.shutdown()
    dist.destroy_process_group(parent)


@distributed(2, init=False, gloo_lacks=LACKS, one_host=True)
def test_the_default_group_and_the_variable() -> None:
    os.environ["RDMACOLL_ALGO"] = "tree"
    options = rdmacoll.Options(algorithm="ring")
    dist.init_process_group("rdma", pg_options=options)
    names = {
        name: taken(dist.new_group(pg_options=rdmacoll.Options(algorithm=name)))
        for name in ("", "auto", "one_shot")
    }
    assert taken() == "ring"
    assert names == {"": "tree", "auto": "two_shot", "one_shot": "one_shot"}
    dist.destroy_process_group()


@distributed(2, fresh=True, gloo_lacks=LACKS)
def test_ranks_must_agree_on_the_algorithm() -> None:
    rank, _ = me()
    options = rdmacoll.Options(algorithm=("ring", "tree")[rank])
    says = f"rank {1 - rank} runs with another.*algorithm=.*set them alike"
    with pytest.raises(RuntimeError, match=says):
        dist.new_group(pg_options=options)


RING = "all_reduce mapped world=2 up_to=any ring\n"


@distributed(2, init=False, gloo_lacks=LACKS, one_host=True)
def test_a_table() -> None:
    """Its path is each rank's own."""
    with table("all_reduce mapped world=2 up_to=64 tree\n" + RING):
        dist.init_process_group("rdma")
    assert (taken(size_bytes=64), taken(size_bytes=65)) == ("tree", "ring")
    assert taken(collective="broadcast") == "direct"
    dist.destroy_process_group()


@distributed(2, init=False, gloo_lacks=LACKS)
def test_ranks_must_agree_on_the_table() -> None:
    rank = int(os.environ["RANK"])
    says = f"rank {1 - rank} runs with another.*RDMACOLL_TUNING.*alike"
    with table(("", RING)[rank]), pytest.raises(RuntimeError, match=says):
        dist.init_process_group("rdma")


@distributed(2, init=False, gloo_lacks=LACKS)
def test_a_table_that_is_wrong_on_one_rank() -> None:
    rank = int(os.environ["RANK"])
    with table("\n" + (RING, RING.replace("ring", "rings"))[rank]) as path:
        says = rf"RDMACOLL_TUNING='{path if rank else ''}.*line 2: 'rings' is no algorithm"
        with pytest.raises(RuntimeError, match=says if rank else f"rank 1.*take part.*{says}"):
            dist.init_process_group("rdma")


@distributed(1, init=False, gloo_lacks=LACKS)
def test_a_table_that_is_not_there() -> None:
    os.environ["RDMACOLL_TUNING"] = path = str(Path(tempfile.gettempdir(), "nowhere", "table"))
    with pytest.raises(
        RuntimeError, match=f"RDMACOLL_TUNING='{path}' cannot be read: No such file"
    ):
        dist.init_process_group("rdma")
