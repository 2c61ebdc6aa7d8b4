"""The secret that ranks draw in their store where nobody gave them one: every store has its own.

Ranks here are plain processes with a launcher's variables, as torchrun starts them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch.distributed as dist
from scripts import finish, start_ranks
from world import backend, host_store

WORLD = 3
KEY = "rdmacoll/secret"
SECRET_BYTES = 32
BEGIN = """
import os, sys, time
import torch
import torch.distributed as dist
import rdmacoll
from rdmacoll._extension import extension

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
expected = world * (world + 1) / 2

def make(store, rank, size):
    return extension().create(store, rank, size, extension().Options(), "", False)

def check(group):
    large = rdmacoll.empty(3 << 20)  # in the heap, and enough for it to matter
    for value in torch.tensor([rank + 1.0]), large.fill_(rank + 1.0):
        group.allreduce([value]).wait()
        assert value.unique().tolist() == [expected], value

def default():
    return dist.group.WORLD._get_backend(torch.device("cpu"))
"""


@pytest.fixture(autouse=True)
def only_for_ours() -> None:
    if backend() != "rdma":
        pytest.skip("it is the backend rdma that draws a secret")


def run(script: str, *arguments: str, store: dist.TCPStore | None = None) -> list[str]:
    """What the ranks print, of which each must succeed."""
    store = store or host_store()
    ranks = start_ranks(store, BEGIN + script, WORLD, *arguments)
    ended = [finish(rank) for rank in ranks]
    assert [rank.code for rank in ended] == [0] * WORLD, "\n".join(rank.output for rank in ended)
    return [rank.output for rank in ended]


PLAIN = """
dist.init_process_group("rdma")
check(default())
check(dist.new_group()._get_backend(torch.device("cpu")))
dist.destroy_process_group()
"""


def test_one_is_drawn_for_all_groups_of_a_store() -> None:
    """Also for those that are made after all were destroyed, and by other processes."""
    store = host_store()
    run(PLAIN + PLAIN, store=store)
    drawn = store.get(KEY)
    assert len(drawn) == SECRET_BYTES
    run(PLAIN, store=store)
    assert store.get(KEY) == drawn


def test_groups_of_some_ranks_come_first() -> None:
    script = """
dist.init_process_group("gloo")
pair = dist.new_group([0, 1], backend="rdma")
alone = dist.new_group([2], backend="rdma")
check(dist.new_group(backend="rdma")._get_backend(torch.device("cpu")))
dist.destroy_process_group()
"""
    run(script)


def test_nothing_is_drawn_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    file.write_text("s" * SECRET_BYTES)
    file.chmod(0o600)
    store = host_store()
    monkeypatch.setenv("RDMACOLL_SECRET_FILE", str(file))
    run(PLAIN, store=store)
    assert not store.check([KEY])


@pytest.mark.parametrize("late", range(2))
def test_a_rank_with_a_group_of_another_store(late: int) -> None:
    """Whoever comes first draws; what rank 0 has in a store of its own is left alone."""
    script = f"""
alone = make(dist.HashStore(), 0, 1) if rank == 0 else None
time.sleep(rank == {late})
dist.init_process_group("rdma")
check(default())
if alone is not None:
    alone.allreduce([torch.ones(1)]).wait()
dist.destroy_process_group()
"""
    outputs = run(script)
    assert ["have the heap" in output for output in outputs] == [True, False, False], outputs


def test_groups_of_two_stores_at_once(tmp_path: Path) -> None:
    script = """
dist.init_process_group("rdma")
beside = make(dist.FileStore(sys.argv[1], world), rank, world)
for _ in range(3):
    check(default())
    check(beside)
dist.destroy_process_group()
check(beside)
beside.shutdown()
"""
    run(script, str(tmp_path / "store"))


def test_what_some_ranks_keep_of_an_earlier_job() -> None:
    """As an exception's traceback does: their endpoint stays open, that of the others does not."""
    second = host_store()
    script = """
dist.init_process_group("rdma")
check(default())
kept = default() if rank == 1 else None
dist.destroy_process_group()
store = dist.TCPStore("127.0.0.1", int(sys.argv[1]), is_master=False)
dist.init_process_group("rdma", store=store, rank=world - 1 - rank, world_size=world)
check(default())
dist.destroy_process_group()
"""
    first = host_store()
    run(script, str(second.port), store=first)
    assert first.get(KEY) != second.get(KEY)


def test_a_kind_of_store_that_can_do_little() -> None:
    script = """
class Plain(dist.Store):
    def __init__(self, store):
        super().__init__()
        self.store = store
    def set(self, key, value):
        self.store.set(key, value)
    def get(self, key):
        return self.store.get(key)
    def add(self, key, value):
        return self.store.add(key, value)
    def check(self, keys):
        return self.store.check(keys)
    def delete_key(self, key):
        return self.store.delete_key(key)

store = Plain(dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=False))
group = make(store, rank, world)
check(group)
group.shutdown()
"""
    store = host_store()
    run(script, store=store)
    assert len(store.get(KEY)) == SECRET_BYTES


def test_what_is_no_secret_is_an_error_on_all() -> None:
    store = host_store()
    store.set(KEY, "something else")
    ranks = start_ranks(store, "import torch.distributed as d; d.init_process_group('rdma')", WORLD)
    for rank in [finish(rank) for rank in ranks]:
        assert rank.code == 1, rank.output
        assert f"14 bytes under '{KEY}'" in rank.output, rank.output
