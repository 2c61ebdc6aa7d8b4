"""The job's secret as torchrun's users give it, in a file: alike it joins, unlike it keeps apart.

Ranks here are plain processes with a launcher's variables, as torchrun starts them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import Finished, finish, start_ranks
from world import host_store

WORLD = 3
JOIN = """
import torch
import torch.distributed as dist
dist.init_process_group("rdma")
value = torch.ones(1)
dist.all_reduce(value)
dist.all_reduce(value, group=dist.new_group())
print("sum", value.item())
dist.destroy_process_group()
dist.init_process_group("rdma")  # another endpoint
dist.barrier()
dist.destroy_process_group()
"""
WARNING = "this job has no secret"


@pytest.fixture
def secret_file(tmp_path: Path) -> Callable[[str, str], str]:
    def write(name: str, content: str) -> str:
        path = tmp_path / name
        path.write_text(content)
        path.chmod(0o600)
        return str(path)

    return write


def run(*files: str) -> list[Finished]:
    """A rank with each of these as its RDMACOLL_SECRET_FILE; empty: without one."""
    store = host_store()
    processes = [
        start_ranks(
            store, JOIN, WORLD, ranks=[rank], **({"RDMACOLL_SECRET_FILE": file} if file else {})
        )[0]
        for rank, file in enumerate(files)
    ]
    return [finish(process) for process in processes]


def test_one_secret_joins(secret_file: Callable[[str, str], str]) -> None:
    """From files of their own, as on hosts of their own."""
    for rank in run(*(secret_file(str(rank), "s" * 32) for rank in range(WORLD))):
        assert rank.code == 0, rank.output
        assert f"sum {WORLD * WORLD}.0" in rank.output
        assert WARNING not in rank.output


def test_without_one_rank_0_says_so_once() -> None:
    ranks = run(*[""] * WORLD)
    assert [rank.code for rank in ranks] == [0] * WORLD, ranks
    assert [rank.output.count(WARNING) for rank in ranks] == [1, 0, 0]
    assert "RDMACOLL_SECRET_FILE" in ranks[0].output


@pytest.mark.parametrize("odd", ["t" * 32, ""], ids=["another", "none"])
def test_a_rank_with_another_or_none_is_an_error_on_all(
    secret_file: Callable[[str, str], str], odd: str
) -> None:
    right = secret_file("right", "s" * 32)
    for rank in run(right, odd and secret_file("odd", odd), right):
        assert rank.code == 1, rank.output
        assert "secret" in rank.output and "RDMACOLL_SECRET_FILE" in rank.output


def test_a_rank_whose_file_is_refused_tells_the_others_why(
    secret_file: Callable[[str, str], str],
) -> None:
    right, open_to_all = secret_file("right", "s" * 32), secret_file("open", "s" * 32)
    Path(open_to_all).chmod(0o644)
    for rank in run(right, open_to_all, right):
        assert rank.code == 1, rank.output
        assert f"RDMACOLL_SECRET_FILE='{open_to_all}' is open to others" in rank.output


def test_an_empty_variable_is_an_error() -> None:
    store = host_store()
    rank = start_ranks(store, JOIN, 1, RDMACOLL_SECRET_FILE="")[0]
    ended = finish(rank)
    assert ended.code == 1, ended.output
    assert "RDMACOLL_SECRET_FILE='' names no file" in ended.output
