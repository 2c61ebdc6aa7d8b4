"""rdmarun --preload torch: ranks that are forked from a process that has torch work as others do.

What holds for any module: tests/launcher/test_preload.py.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from world import backend

BIN = Path(sys.executable).parent
LIMIT_S = 120


@pytest.fixture(autouse=True)
def only_for_ours() -> None:
    if backend() != "rdma":
        pytest.skip("rdmarun's agent is of the backend rdma")


def run(folder: Path, script: str, *options: str, preload: str = "torch") -> list[str]:
    """The sorted lines that the ranks print."""
    (folder / "script.py").write_text(textwrap.dedent(script))
    finished = subprocess.run(
        [BIN / "rdmarun", "--no-tag-output", "--preload", preload, *options, "script.py"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return sorted(finished.stdout.splitlines())


SUM = """
    import sys
    assert "torch" in sys.modules
    import torch
    import torch.distributed as dist
    dist.init_process_group("rdma")
    rank, world = dist.get_rank(), dist.get_world_size()
    total = torch.full((100_000,), float(rank + 1))
    dist.all_reduce(total)
    print(rank, total.unique().tolist(), dist.get_world_size(dist.new_group([0])) == 1)
    dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    "options", [("1",), ("2",), ("4",), ("4", "-H", "localhost:2,127.0.0.1:2")]
)
@pytest.mark.parametrize("preload", ["torch", "torch,rdmacoll._C"])
def test_all_reduce(tmp_path: Path, options: tuple[str, ...], preload: str) -> None:
    world = int(options[0])
    lines = run(tmp_path, SUM, "-np", *options, preload=preload)
    total = world * (world + 1) / 2
    assert lines == [f"{rank} [{total}] {rank == 0}" for rank in range(world)]


def test_torchs_own_numbers(tmp_path: Path) -> None:
    """Its generator's seed is each rank's own; that of the program holds."""
    script = """
        import torch
        print("first", torch.rand(1).item(), torch.initial_seed())
        torch.manual_seed(1)
        print("then", torch.rand(1).item())
        print("threads", torch.get_num_threads())
    """
    lines = run(tmp_path, script, "-np", "4", "-x", "OMP_NUM_THREADS=1")
    assert len({line for line in lines if line.startswith("first")}) == 4
    assert len({line for line in lines if line.startswith("then")}) == 1
    assert lines.count("threads 1") == 4


def test_threads_of_a_ranks_own(tmp_path: Path) -> None:
    """OpenMP's and autograd's, which the process that imports has never started."""
    script = """
        import os, torch
        a = torch.rand(700, 700, requires_grad=True)
        (a @ a).sin().sum().backward()
        print(a.grad.isfinite().all().item(), len(os.listdir("/proc/self/task")) > 1)
    """
    assert run(tmp_path, script, "-np", "2", "-x", "OMP_NUM_THREADS=2") == ["True True"] * 2


def test_workers(tmp_path: Path) -> None:
    """Of a DataLoader, and processes by torch.multiprocessing, beside a group."""
    script = """
        import os, torch
        import torch.distributed as dist
        import torch.multiprocessing as mp
        from torch.utils.data import DataLoader, TensorDataset

        def write(index, folder):
            open(f"{folder}/{os.environ['RANK']}.{index}", "w").close()

        def put(queue, value):
            queue.put(value.sum().item())

        if __name__ == "__main__":
            dist.init_process_group("rdma")
            loader = DataLoader(TensorDataset(torch.arange(8)), batch_size=4, num_workers=2)
            total = torch.stack([batch.sum() for batch, in loader]).sum()
            dist.all_reduce(total)
            mp.spawn(write, (os.getcwd(),), nprocs=2)
            for method in "fork", "spawn":
                context = mp.get_context(method)
                queue = context.Queue()
                child = context.Process(target=put, args=(queue, torch.ones(3)))
                child.start()
                total = total + queue.get()
                child.join()
            dist.barrier()
            print(total.item())
            dist.destroy_process_group()
    """
    assert run(tmp_path, script, "-np", "2") == ["62.0"] * 2
    assert sorted(path.name for path in tmp_path.glob("[01].*")) == ["0.0", "0.1", "1.0", "1.1"]


def test_training(tmp_path: Path) -> None:
    """DDP, whose threads and hooks torch makes in the rank."""
    script = """
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel
        dist.init_process_group("rdma")
        torch.manual_seed(0)
        net = DistributedDataParallel(torch.nn.Linear(10, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(3):
            torch.manual_seed(step * 10 + dist.get_rank())
            net(torch.rand(8, 10)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        print(net.module.weight.sum().item())
        # No destroy_process_group(): the end of the process does it.
    """
    assert len(set(run(tmp_path, script, "-np", "2"))) == 1


def test_survivors_go_on(tmp_path: Path) -> None:
    script = """
        import os, rdmacoll, signal, torch
        import torch.distributed as dist
        dist.init_process_group("rdma")
        value = torch.ones(1)
        dist.all_reduce(value)
        if dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            dist.all_reduce(value)
        except RuntimeError:
            rdmacoll.shrink_group()
        value = torch.ones(1)
        dist.all_reduce(value)
        print(value.item())
        dist.destroy_process_group()
    """
    assert run(tmp_path, script, "-np", "3", "--min-np", "2") == ["2.0"] * 2


def test_a_dump_shows_the_ranks(tmp_path: Path) -> None:
    script = f"""
        import os, subprocess, torch
        import torch.distributed as dist
        dist.init_process_group("rdma")
        dist.barrier()
        if dist.get_rank() == 0:
            dump = ["{BIN}/rdmacoll", "debug", "dump", "--job", str(os.getppid())]
            said = subprocess.check_output(dump, text=True)
            rows = [line.split()[0] for line in said.splitlines() if line.split()]
            print([row for row in rows if row.isdecimal()])
        dist.barrier()
        dist.destroy_process_group()
    """
    assert run(tmp_path, script, "-np", "2") == ["['0', '1']"]


@pytest.mark.nightly
def test_64_ranks(tmp_path: Path) -> None:
    lines = run(tmp_path, SUM, "-np", "64")
    assert sorted(lines) == sorted(f"{rank} [2080.0] {rank == 0}" for rank in range(64))
