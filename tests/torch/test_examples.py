"""Every example as its first lines say, and some by torchrun and with other numbers of ranks."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from fuse import check_fuse
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


EXAMPLES = sorted(path.name for path in ROOT.glob("examples/[0-9]*.py"))


def first_lines(example: str) -> list[str]:
    """What stands behind `rdmarun -np` there."""
    text = (ROOT / "examples" / example).read_text()
    line = re.search(r"^ *rdmarun -np (.*)$", text, re.MULTILINE)
    assert line, f"{example} does not say how it is started"
    return shlex.split(line[1])


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


def train_digits(output: str, ranks: int, folder: Path) -> None:
    assert f"all {ranks} ranks hold the same parameters" in output
    assert "bit for bit" in output if ranks == 2 else "losses equal gloo's" in output
    assert (folder / "out/01_train_digits.png").stat().st_size > 10_000


def collectives(output: str, ranks: int, _folder: Path) -> None:
    assert ranks == 2
    for rank in range(2):
        assert f"rank {rank} of 2: the sum is [3.0, 3.0, 3.0, 3.0]" in output


def tensor_parallel(output: str, ranks: int, _folder: Path) -> None:
    assert output.count("largest difference") == ranks


def pipeline(output: str, ranks: int, _folder: Path) -> None:
    assert f"8 microbatches through {ranks} stages" in output


def heap(output: str, _ranks: int, _folder: Path) -> None:
    assert "all models are the same bit for bit" in output
    assert "left where they are: 0 tensor(s)" in output


def survivors(output: str, ranks: int, _folder: Path) -> None:
    left = ranks - 1
    assert f"{left} of {ranks} ranks are left and go on" in output
    assert output.count(f"ranks ({left},) are gone") == left
    assert output.count(f"of {left}: trained on from step 200") == left


def restart(output: str, ranks: int, _folder: Path) -> None:
    assert output.count("attempt 0 begins with epoch 0") == ranks
    assert output.count("attempt 1 begins with epoch 3") == ranks
    assert output.count("test accuracy") == ranks


def elastic(output: str, ranks: int, _folder: Path) -> None:
    assert ranks == 3
    assert output.count("of 2: goes on from step 200") == 2
    assert output.count("of 3: goes on from step ") == 6  # at first, and once all are back
    assert output.count("the groups had [3, 2, 3] ranks") == 3


def weight_sync(output: str, ranks: int, _folder: Path) -> None:
    assert "trained to version" in output
    for rank in range(1, ranks):
        lives = 2 if rank == ranks - 1 else 1
        assert output.count(f"rank {rank} begins with version") == lives
        assert len(re.findall(rf"rank {rank} saw \d+ versions", output)) == 1


def parameter_server(output: str, ranks: int, _folder: Path) -> None:
    accuracies = re.findall(r"worker \d has a test accuracy of (\d+\.\d+)%", output)
    assert len(accuracies) == ranks and len(set(accuracies)) == 1
    assert float(accuracies[0]) > 90


def recommender(output: str, ranks: int, _folder: Path) -> None:
    assert "killed server 0" in output
    assert len(re.findall(r"rank \d finds \d+\.\d+% of what users like", output)) == ranks


def files(output: str, ranks: int, _folder: Path) -> None:
    assert "killed server 0" in output
    assert len(re.findall(r"has read \d+ whole files, the last one of epoch 6", output)) == 1
    assert len(re.findall(r"rank \d has loaded what it has", output)) == ranks


def horovod(output: str, ranks: int, _folder: Path) -> None:
    found = re.findall(r"(\d) ranks, (\d+\.\d) % right; rank 0 was the last one", output)
    assert len(found) == 1 and int(found[0][0]) == ranks and float(found[0][1]) > 80


def tensor_parallel_decoding(output: str, _ranks: int, _folder: Path) -> None:
    assert "64 tokens are the same, both ways and on all ranks" in output
    rates = re.findall(r"torch\.(?:ops\.rdmacoll|distributed): (\d+) tokens/s", output)
    assert len(rates) == 2 and all(int(rate) > 0 for rate in rates)


CHECKS = {
    "01_train_digits.py": train_digits,
    "02_collectives.py": collectives,
    "03_tensor_parallel.py": tensor_parallel,
    "04_pipeline.py": pipeline,
    "05_heap.py": heap,
    "06_survivors.py": survivors,
    "07_restart.py": restart,
    "08_elastic.py": elastic,
    "09_weight_sync.py": weight_sync,
    "10_parameter_server.py": parameter_server,
    "11_recommender.py": recommender,
    "12_files.py": files,
    "13_horovod.py": horovod,
    "14_tensor_parallel_decoding.py": tensor_parallel_decoding,
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_as_its_first_lines_say(example: str, tmp_path: Path) -> None:
    ranks, *arguments = first_lines(example)
    if "--mount" in arguments:
        check_fuse()
    output = run("rdmarun", ranks, *arguments, folder=tmp_path)
    CHECKS[example](output, int(ranks), tmp_path)


@pytest.mark.parametrize(
    ("example", "ranks"), [("01_train_digits.py", 3), ("02_collectives.py", 2)]
)
def test_by_torchrun(example: str, ranks: int, tmp_path: Path) -> None:
    output = run("torchrun", ranks, f"examples/{example}", folder=tmp_path)
    CHECKS[example](output, ranks, tmp_path)


def test_heap_of_more_ranks(tmp_path: Path) -> None:
    heap(run("rdmarun", 3, "examples/05_heap.py", folder=tmp_path), 3, tmp_path)


def test_a_survivor_alone(tmp_path: Path) -> None:
    output = run("rdmarun", 2, "--min-np", "1", "examples/06_survivors.py", folder=tmp_path)
    survivors(output, 2, tmp_path)
