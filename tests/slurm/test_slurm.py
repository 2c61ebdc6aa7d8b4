"""Jobs on a real Slurm, of two nodes: rdmarun finds them, srun starts its agents, or the ranks.

What Slurm says of itself is also recorded, in tests/launcher/test_allocation.py, which always runs.
Floor: tests.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from cluster import LOGIN_HOST, Cluster, rdmarun

from rdmacoll.base.slurm_lists import expand_hosts

pytestmark = pytest.mark.nightly

TWO_NODES = ["-N2", "--ntasks-per-node=2"]
SALLOC = ["salloc", "--quiet", *TWO_NODES]
# Each rank says where it is, and who shares a group with it.
RANK = """
import os, socket, sys
import torch, torch.distributed as dist
import rdmacoll
rdmacoll.env_from_slurm()
dist.init_process_group("rdma")
ones = torch.ones(1)
dist.all_reduce(ones)
local = os.environ["LOCAL_RANK"] + " " + os.environ["LOCAL_WORLD_SIZE"]
# In one piece: ranks may share a pipe, and PYTHONUNBUFFERED writes word by word.
print(f"rank {dist.get_rank()} {local} on {socket.gethostname()} sum {int(ones)}", flush=True)
dist.destroy_process_group()
"""
FOUR_RANKS = [
    ("0", "0", "2", "nodeA", "4"),
    ("1", "1", "2", "nodeA", "4"),
    ("2", "0", "2", "nodeB", "4"),
    ("3", "1", "2", "nodeB", "4"),
]


def ranks(output: str) -> list[tuple[str, ...]]:
    return sorted(re.findall(r"rank (\d) (\d) (\d) on (node.) sum (\d)", output))


def short_forms(seed: int, count: int) -> list[str]:
    """Lists of hosts as Slurm may write them: ranges, zeros before numbers, several brackets."""
    random = Random(seed)

    def numbers() -> str:
        width = random.choice([1, 1, 2, 4])
        first = random.randrange(120)
        last = first + random.randrange(1, 15)
        return random.choice([f"{first:0{width}}", f"{first:0{width}}-{last:0{width}}"])

    def bracket() -> str:
        return f"[{','.join(numbers() for _ in range(random.randint(1, 3)))}]"

    def entry() -> str:
        forms = ["login", f"n{bracket()}", f"r{bracket()}n{bracket()}", "a-1.b2"]
        return random.choice(forms)

    return [",".join(entry() for _ in range(random.randint(1, 4))) for _ in range(count)]


def test_lists_of_hosts_are_expanded_as_slurm_does(cluster: Cluster) -> None:
    for text in short_forms(seed=1, count=60):
        done = cluster.run("scontrol", "show", "hostnames", text)
        assert done.stdout.split() == expand_hosts(text), text


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(RANK)
    return str(path)


@pytest.fixture(autouse=True)
def nothing_left(cluster: Cluster) -> Iterator[None]:
    yield
    left = cluster.processes_of_jobs
    cluster.wait_for(lambda: not left(), f"the end of {left()}")


def test_rdmarun_in_a_batch_job(cluster: Cluster, script: str, tmp_path: Path) -> None:
    job, out = tmp_path / "job.sh", tmp_path / "out"
    job.write_text(f"#!/bin/sh\nexec {' '.join(rdmarun(script))}\n")
    done = cluster.run("sbatch", "--parsable", *TWO_NODES, f"--output={out}", str(job))
    assert done.returncode == 0, done.stderr
    number = done.stdout.strip()

    def ended() -> bool:
        return "JobState=COMPLETED" in cluster.run("scontrol", "show", "job", number).stdout

    cluster.wait_for(ended, f"the end of job {number}")
    said = out.read_text()
    assert f"rdmarun: hosts from Slurm job {number}: nodeA:2, nodeB:2\n" in said
    assert ranks(said) == FOUR_RANKS, said


@pytest.mark.parametrize("before", [[], ["srun", "-N1", "-n1"]], ids=["salloc", "step"])
def test_rdmarun_elsewhere_in_a_job(cluster: Cluster, script: str, before: list[str]) -> None:
    done = cluster.run(*SALLOC, *before, *rdmarun("--verbose", script))
    assert done.returncode == 0, done.stderr
    assert ranks(done.stdout) == FOUR_RANKS, done.stdout
    assert re.search(r"mpiexec -hosts \S*nodeB ", done.stderr)


@pytest.mark.parametrize("count", [1, 2])
def test_rdmarun_on_a_login_host(cluster: Cluster, script: str, count: int) -> None:
    """Where no rank is to run: salloc may be there, and what it runs."""
    salloc = ["salloc", "--quiet", f"-N{count}", "--ntasks-per-node=2"]
    done = cluster.run(*salloc, *rdmarun(script), host=LOGIN_HOST)
    assert done.returncode == 0, done.stderr
    placed = [(rank, local, size, host) for rank, local, size, host, _ in FOUR_RANKS]
    assert [found[:4] for found in ranks(done.stdout)] == placed[: 2 * count], done.stdout


def test_the_agents_have_all_cpus(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "cpus.py"
    script.write_text("import os; print(len(os.sched_getaffinity(0)) == os.cpu_count())")
    done = cluster.run(*SALLOC, *rdmarun(str(script)))
    assert re.findall(r"True|False", done.stdout) == ["True"] * 4, done.stdout + done.stderr


def test_fewer_ranks_than_slots(cluster: Cluster, script: str) -> None:
    done = cluster.run(*SALLOC, *rdmarun("-np", "2", script))
    assert ranks(done.stdout) == [("0", "0", "2", "nodeA", "2"), ("1", "1", "2", "nodeA", "2")]
    assert "nodeA:2, nodeB:2 (no rank on nodeB)\n" in done.stderr


def test_srun_alone(cluster: Cluster, script: str) -> None:
    done = cluster.run("srun", "--quiet", *TWO_NODES, rdmarun()[0], script)
    assert done.returncode == 0, done.stderr
    assert ranks(done.stdout) == FOUR_RANKS, done.stdout


def test_torchrun_by_srun(cluster: Cluster, script: str) -> None:
    run = [rdmarun()[0], "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2"]
    meet = ["--rdzv-backend=c10d", "--rdzv-endpoint=nodeA:29400", "--rdzv-id=7"]
    done = cluster.run("srun", "--quiet", "-N2", "--ntasks-per-node=1", *run, *meet, script)
    assert done.returncode == 0, done.stderr
    found = ranks(done.stdout)  # which host is the first is torchrun's choice
    assert [(rank, total) for rank, _, _, _, total in found] == [(str(r), "4") for r in range(4)]
    assert sorted(host for _, _, _, host, _ in found) == ["nodeA", "nodeA", "nodeB", "nodeB"]


def test_srun_that_starts_rdmarun_several_times(cluster: Cluster, script: str) -> None:
    done = cluster.run("srun", "--quiet", *TWO_NODES, *rdmarun(script))
    assert done.returncode == 2
    assert "SLURM_STEP_NUM_TASKS=4: srun starts rdmarun so many times" in done.stderr


def test_the_status_of_a_rank_that_fails(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text("import os, time\nos.environ['RANK'] == '3' and os._exit(7)\ntime.sleep(999)")
    done = cluster.run(*SALLOC, *rdmarun(str(script)))
    assert done.returncode == 7, done.stderr
    assert "rank 3 on nodeB (pid " in done.stderr


def test_a_job_that_is_cancelled(cluster: Cluster, tmp_path: Path) -> None:
    script, up = tmp_path / "waits.py", tmp_path / "up"
    script.write_text(f"import os, time\nopen('{up}' + os.environ['RANK'], 'w')\ntime.sleep(999)")
    wrap = f"--wrap={' '.join(rdmarun(str(script)))}"
    done = cluster.run("sbatch", "--parsable", *TWO_NODES, "--output=/dev/null", wrap)
    number = done.stdout.strip()
    cluster.wait_for(lambda: len(list(tmp_path.glob("up?"))) == 4, "all ranks")
    assert cluster.processes_of_jobs()
    assert cluster.run("scancel", number).returncode == 0
