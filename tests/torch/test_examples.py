"""The examples, as the README starts them: by rdmarun and by torchrun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from world import backend

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
LAUNCHERS = {
    "rdmarun": [str(BIN / "rdmarun"), "-np"],
    "torchrun": [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"],
}


@pytest.fixture(autouse=True)
def only_for_ours() -> None:
    if backend() != "rdma":
        pytest.skip("the examples name their backend")


def run(launcher: str, ranks: int | str, *arguments: str, folder: Path) -> str:
    command = [*LAUNCHERS[launcher], str(ranks)]
    finished = subprocess.run(
        [*command, *(str(ROOT / word) if word.endswith(".py") else word for word in arguments)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


@pytest.mark.parametrize(("launcher", "ranks"), [("rdmarun", 2), ("torchrun", 3)])
def test_train_digits(launcher: str, ranks: int, tmp_path: Path) -> None:
    output = run(launcher, ranks, "examples/01_train_digits.py", folder=tmp_path)
    assert f"all {ranks} ranks hold the same parameters" in output
    assert "bit for bit" in output if ranks == 2 else "losses equal gloo's" in output
    assert (tmp_path / "out/01_train_digits.png").stat().st_size > 10_000


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_collectives(launcher: str, tmp_path: Path) -> None:
    output = run(launcher, 2, "examples/02_collectives.py", folder=tmp_path)
    for rank in range(2):
        assert f"rank {rank} of 2: the sum is [3.0, 3.0, 3.0, 3.0]" in output


def test_tensor_parallel(tmp_path: Path) -> None:
    output = run("rdmarun", 3, "examples/03_tensor_parallel.py", folder=tmp_path)
    assert output.count("largest difference") == 3


def test_pipeline(tmp_path: Path) -> None:
    output = run("rdmarun", 3, "examples/04_pipeline.py", folder=tmp_path)
    assert "8 microbatches through 3 stages" in output


@pytest.mark.parametrize("ranks", [2, 3])
def test_heap(ranks: int, tmp_path: Path) -> None:
    output = run("rdmarun", ranks, "examples/05_heap.py", folder=tmp_path)
    assert "both models are the same bit for bit" in output


@pytest.mark.parametrize("ranks", [2, 4])
def test_survivors(ranks: int, tmp_path: Path) -> None:
    left = ranks - 1
    options = [str(ranks), "--min-np", str(left)]
    output = run("rdmarun", *options, "examples/06_survivors.py", folder=tmp_path)
    assert f"{left} of {ranks} ranks are left and go on" in output
    assert output.count(f"ranks ({left},) are gone") == left
    assert output.count(f"of {left}: trained on from step 200") == left


def test_restart(tmp_path: Path) -> None:
    options = ["3", "--max-restarts", "1"]
    output = run("rdmarun", *options, "examples/07_restart.py", folder=tmp_path)
    assert output.count("attempt 0 begins with epoch 0") == 3
    assert output.count("attempt 1 begins with epoch 3") == 3
    assert output.count("test accuracy") == 3


def test_elastic(tmp_path: Path) -> None:
    options = ["3", "--min-np", "2", "--max-restarts", "1", "--elastic"]
    output = run("rdmarun", *options, "examples/08_elastic.py", folder=tmp_path)
    assert output.count("of 2: goes on from step 200") == 2
    assert output.count("of 3: goes on from step ") == 6  # at first, and once all are back
    assert output.count("the groups had [3, 2, 3] ranks") == 3
