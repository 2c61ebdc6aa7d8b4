"""RDMACOLL_AS_GLOO and --as-gloo: which groups get rdma, what torch answers, what is refused.

Floor: tests.
"""

import os
import subprocess
import sys

import pytest
from rdmacoll.launcher.command.options import parse
from runs import ranks_of

from rdmacoll import as_gloo

# One rank's groups; each line: what was asked for, get_backend(), get_backend_config().
GROUPS = """
import sys, torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
assert "rdmacoll._C" not in sys.modules
def said(group=None):
    kind = type((group or dist.group.WORLD)._get_backend(torch.device("cpu"))).__name__
    return dist.get_backend(group), dist.get_backend_config(group), kind
def world(*names, **options):
    store = dist.HashStore()
    dist.init_process_group(*names, store=store, rank=0, world_size=1, **options)
    dist.all_reduce(torch.ones(1))
    return said()
OURS = "RdmaBackend"
assert world("gloo") == ("gloo", "cpu:rdma", OURS)
dist.monitored_barrier()
assert said(dist.new_group()) == said(dist.new_group(backend="gloo")) == said()
assert said(dist.new_group(backend="rdma")) == ("rdma", "cpu:rdma", OURS)
assert said(dist.new_group(backend="cpu:gloo")) == ("cpu:gloo", "cpu:rdma", OURS)
options = dist.ProcessGroupGloo._Options()
assert said(dist.new_group(backend="gloo", pg_options=options))[2] == OURS
assert said(dist.new_group(backend="cpu:gloo,cuda:gloo"))[1:] == ("cpu:rdma,cuda:gloo", OURS)
assert said(init_device_mesh("cpu", (1,)).get_group())[2] == OURS
dist.destroy_process_group()
assert world() == ("undefined", "cpu:rdma", OURS)
"""

ONE_GROUP = """
import torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
print(dist.get_backend(), dist.get_backend_config())
"""

# torch makes groups otherwise than we know.
ANOTHER_TORCH = """
import torch
from torch.distributed import distributed_c10d as c10d
CHANGE
import os
os.environ["RDMACOLL_AS_GLOO"] = "1"
from rdmacoll._register import register
register()
"""


def python(source: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_which_groups_get_rdma() -> None:
    finished = python(GROUPS, RDMACOLL_AS_GLOO="1")
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr.count("RDMACOLL_AS_GLOO=1: groups that ask for gloo get rdma") == 1


@pytest.mark.parametrize(
    ("asked", "served"),
    [
        ("gloo", "rdma"),
        ("undefined", "rdma"),
        ("cpu:gloo", "rdma"),
        ("cpu:gloo,cuda:nccl", "cpu:rdma,cuda:nccl"),
        ("cuda:nccl,cpu:gloo", "cuda:nccl,cpu:rdma"),
        ("cuda:gloo", "cuda:gloo"),
        ("nccl", "nccl"),
        ("rdma", "rdma"),
    ],
)
def test_what_is_served(asked: str, served: str) -> None:
    assert as_gloo.served(asked) == served


@pytest.mark.parametrize("env", [{}, {"RDMACOLL_AS_GLOO": "0"}], ids=["unset", "0"])
def test_gloo_is_gloo_otherwise(env: dict[str, str]) -> None:
    finished = python(ONE_GROUP, **env)
    assert finished.stdout.split() == ["gloo", "cpu:gloo,cuda:gloo"], finished.stderr
    assert "RDMACOLL_AS_GLOO" not in finished.stderr


def test_another_value_is_an_error() -> None:
    finished = python("import torch", RDMACOLL_AS_GLOO="yes")
    assert finished.returncode != 0
    assert "RDMACOLL_AS_GLOO='yes' is neither 0 nor 1" in finished.stderr


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        ("del c10d._new_process_group_helper", "has no _new_process_group_helper(backend, "),
        ("c10d._new_process_group_helper = lambda backend, backend_options: 0", "(global_ranks_in"),
    ],
)
def test_another_torch_is_an_error(change: str, lacks: str) -> None:
    finished = python(ANOTHER_TORCH.replace("CHANGE", change))
    assert finished.returncode != 0
    assert lacks in finished.stderr and "ask for the backend by its name, rdma" in finished.stderr


def test_the_option_sets_the_variable() -> None:
    assert parse(["-np", "2", "--as-gloo", "a.py"], {}, "0").env == {"RDMACOLL_AS_GLOO": "1"}
    assert parse(["-np", "2", "a.py"], {}, "0").env == {}


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["-x", "RDMACOLL_AS_GLOO=on"], "RDMACOLL_AS_GLOO='on' is neither 0 nor 1"),
        (["--as-gloo", "-x", "TORCH_DEVICE_BACKEND_AUTOLOAD=0"], "the ranks would get gloo"),
    ],
)
def test_the_option_refuses(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        parse(["-np", "2", *argv, "a.py"], {}, "0")
    assert exited.value.code == 2 and says in capsys.readouterr().err


def test_it_is_said_by_one_rank_alone() -> None:
    source = "import torch.distributed as d; d.init_process_group('gloo'); d.barrier()"
    run = ranks_of(source, "--as-gloo")
    assert run.output.count("groups that ask for gloo get rdma") == 1
