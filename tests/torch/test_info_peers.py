"""`rdmacoll info --peers`: run by all ranks of a job, told by rank 0."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from world import backend

PEERS = ("rdmacoll", "info", "--peers")
BIN = Path(sys.executable).parent
LAUNCHERS = {
    "rdmarun": [str(BIN / "rdmarun"), "--no-tag-output", "-np", "3"],
    "torchrun": [
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--standalone", "--nproc-per-node", "3"),
    ],
}


@pytest.fixture(autouse=True)
def only_for_ours() -> None:
    if backend() != "rdma":
        pytest.skip(f"{backend()} is torch's own")


def call(*command: str) -> subprocess.CompletedProcess[str]:
    without_rank = {name: value for name, value in os.environ.items() if name != "RANK"}
    return subprocess.run(
        command,
        env={**without_rank, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_peers_of_no_job() -> None:
    done = call(sys.executable, "-m", *PEERS)
    assert (done.returncode, done.stdout) == (2, "")
    assert "rdmarun -np 4 -m rdmacoll info --peers" in done.stderr


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_peers(launcher: str) -> None:
    done = call(*LAUNCHERS[launcher], "-m", *PEERS, "--json")
    assert done.returncode == 0, done.stderr
    ranks = json.loads(done.stdout)
    assert [rank["rank"] for rank in ranks] == [0, 1, 2]
    for rank in ranks:
        peers = [peer for peer in range(3) if peer != rank["rank"]]
        assert [path["peer"] for path in rank["paths"]] == peers
        assert all(path["transport"] == "shm" and path["reason"] for path in rank["paths"])


def test_peers_for_people() -> None:
    done = call(*LAUNCHERS["rdmarun"], "-m", *PEERS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("rank ") == 3
    assert "  -> 1-2  shm: " in done.stdout
