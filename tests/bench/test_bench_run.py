"""Whole runs on few bytes: what they print and write, and how those end that go wrong."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from bench_process import BIN, bench, run
from rdmacoll.launcher.base.hosts import Host
from rdmacoll.launcher.command.mpi_command import mpi_command
from rdmacoll.launcher.command.mpi_find import find_mpi

from rdmacoll.bench.operations import OPERATIONS
from rdmacoll.bench.plot import system_names

QUICK = ["--rounds", "1", "--sizes", "4,4K"]
LAUNCHERS = {
    "rdmarun": [str(BIN / "rdmarun"), "--no-tag-output", "-np", "3"],
    "torchrun": [
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--standalone", "--nproc-per-node", "3"),
    ],
}


def test_all_operations_on_all_systems(tmp_path: Path) -> None:
    written = ["--json", "result.json", "--plot", "result.svg"]
    done = bench("-np", "2", "all", "--vs", "gloo,mpi,fake", *QUICK, *written, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["ranks"], result["dtype"], result["checked"]) == (2, "float32", True)
    assert set(result["versions"]) == {"rdmacoll", "torch", "mpi"}
    assert result["machine"]["copy_gb_per_s"] > 0 and result["machine"]["torch_call_us"] > 0
    assert {row["operation"] for row in result["rows"]} == set(OPERATIONS)
    for row in result["rows"]:
        assert list(row["systems"]) == ["rdma", "gloo", "mpi", "fake"]
        for times in row["systems"].values():
            assert 0 < times["p50_us"] <= times["p99_us"]
            assert times["algbw_gb_per_s"] == pytest.approx(row["bytes"] / times["p50_us"] / 1e3)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("2 ranks on ")
    assert lines[1].startswith("memcpy ")
    for row in result["rows"]:
        p50 = f"{row['systems']['mpi']['p50_us']:.1f}"
        assert any(line.split()[:2] == ["mpi", p50] for line in lines), (row, done.stdout)
    assert sum(line.endswith("rdma is faster") for line in lines) == len(OPERATIONS)
    drawn = (tmp_path / "result.svg").read_text()
    for text in (
        *("all_reduce: time, less is better", "bus bandwidth, GB/s", "size of the message"),
        *(">memcpy of as much<", ">rdmacoll<", ">gloo<", " (mpi4py)<", ">4 KB<"),
    ):
        assert text in drawn
    assert "barrier" not in drawn


@pytest.mark.parametrize("name", ["MPICH", "Open MPI"])
def test_an_mpi_has_its_whole_name(name: str) -> None:
    assert system_names({"mpi": f"{name} 5.0.2"})["mpi"] == f"{name} (mpi4py)"


@pytest.mark.parametrize(("launcher", "operation"), [("rdmarun", "all"), ("torchrun", "reduce")])
def test_in_a_job(launcher: str, operation: str, tmp_path: Path) -> None:
    what = ["--rounds", "1", "--sizes", "1K", "--dtype", "bfloat16", "--op", "product"]
    command = [*LAUNCHERS[launcher], "-m", "rdmacoll", "bench", operation, *what]
    command += ["--vs", "gloo", "--plot", "x.png"]
    done = run(*command, folder=tmp_path, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("3 ranks on ")
    assert "bfloat16, product" in done.stdout
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_alone_and_in_place(tmp_path: Path) -> None:
    what = ["all_gather", "reduce_scatter", "all_reduce", "--in-place", "--dtype", "int8"]
    what += ["--memory", "heap"]
    done = bench("-np", "2", *what, *QUICK, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "int8, sum, in place, in the heap" in done.stdout
    assert "is faster" not in done.stdout


WRONG_BROADCAST = """
import sys
import torch.distributed as dist
from rdmacoll.__main__ import main

right = dist.broadcast

def wrong(tensor, root, group):
    right(tensor, root, group=group)
    if dist.get_rank() == 1:
        tensor[-1] += 1

dist.broadcast = wrong
sys.argv = ["rdmacoll", "bench", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(("options", "status"), [([], 1), (["--no-check"], 0)])
def test_a_wrong_result(options: list[str], status: int, tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text(WRONG_BROADCAST)
    command = [str(BIN / "rdmarun"), "-np", "2", str(script), "broadcast", *QUICK, *options]
    done = run(*command, folder=tmp_path)
    assert done.returncode == status, done.stdout + done.stderr
    says = "rdma computes something else: broadcast of 4 B on rank 1: element 0 is"
    assert (says in done.stderr) == (status == 1)


BROKEN_MPI = """
import os, signal, time
import rdmacoll.bench.frame.job
import rdmacoll.bench.mpi_calls
from mpi4py import MPI
from rdmacoll.bench.worker import main

def broken(case, reduction):
    def call():
        if MPI.COMM_WORLD.rank == 1:
            {does}
        else:
            MPI.COMM_WORLD.Barrier()
    return call

rdmacoll.bench.mpi_calls.mpi_call = broken
rdmacoll.bench.frame.job.STEP_TIMEOUT_S = {limit_s}
main()
"""


@pytest.mark.parametrize(
    ("does", "limit_s", "says"),
    [
        ("raise OSError('out of luck')", 100.0, "OSError: out of luck"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 100.0, ""),
        ("time.sleep(1000)", 3.0, "Timeout"),
    ],
)
def test_an_mpi_rank_that_fails(does: str, limit_s: float, says: str, tmp_path: Path) -> None:
    """The other one waits for it in MPI, which never gives up by itself."""
    script = tmp_path / "broken.py"
    script.write_text(BROKEN_MPI.format(does=does, limit_s=limit_s))
    mpi, here = find_mpi(), [Host("localhost", 1)] * 2
    rank = [sys.executable, str(script), "-np", "2", "--vs", "mpi", *QUICK]
    command, env = mpi_command(mpi.mpiexec, mpi.flavour, here, rank, os.getuid() == 0)
    done = run(*command, folder=tmp_path, **env)
    assert done.returncode != 0
    assert says in done.stderr, done.stderr
