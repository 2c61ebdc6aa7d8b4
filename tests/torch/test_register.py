"""The name "rdma" is known without an import of ours, costs nothing until used, breaks nothing."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest
from scripts import run_python
from world import backend


@pytest.fixture(autouse=True)
def only_for_ours() -> None:
    if backend() != "rdma":
        pytest.skip(f"{backend()} is torch's own")


def check_passes(source: str) -> None:
    finished = run_python(source)
    assert finished.code == 0, finished.output


def test_known_after_import_torch() -> None:
    check_passes("""
import sys, torch, torch.distributed as dist
assert "rdma" in dist.Backend.backend_list
assert dist.is_backend_available("rdma")
assert dist.Backend("RDMA") == "rdma"
assert "cpu" in dist.Backend.backend_capability["rdma"]
assert "rdmacoll._C" not in sys.modules  # it is loaded on first use
import threading
assert threading.active_count() == 1
""")


def test_import_rdmacoll_alone() -> None:
    check_passes("""
import rdmacoll, torch.distributed as dist
assert dist.is_backend_available("rdma")
assert rdmacoll.__version__
""")


def test_a_broken_build_does_not_break_torch() -> None:
    check_passes("""
import sys
sys.modules["rdmacoll._C"] = None
import torch, torch.distributed as dist
store = dist.HashStore()
try:
    dist.init_process_group("rdma", store=store, rank=0, world_size=1)
except ImportError as error:
    assert "rdmacoll" in str(error)
else:
    raise SystemExit("no error from a backend that cannot be loaded")
""")


@pytest.mark.parametrize("group", ["torch.backends", "torch.distributed.backends"])
def test_entry_points(group: str) -> None:
    assert [point.name for point in entry_points(group=group) if point.name == "rdma"] == ["rdma"]
