"""Jobs inside the ranks of a job: each is independent, whatever it has inherited.

All run under rdmarun. The sum that a group computes shows who was in it.
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

# What the members of the groups run: a name for the sum, and what this process adds to it.
MEMBER = """
import os, sys, time
import torch
import torch.distributed as dist

def add(what, value, **where):
    # Rank 0 of one nested job comes first, and rank 1 of the other: these two would meet if the
    # jobs were mixed up.
    if os.environ.get("OUTER", os.environ["RANK"]) != os.environ["RANK"]:
        time.sleep(1)
    dist.init_process_group("rdma", **where)
    total = torch.tensor([float(value)])
    dist.all_reduce(total)
    sub = dist.new_group()
    dist.all_reduce(total, group=sub)
    # In one write: processes share the pipe.
    os.write(1, f"{what}: {total.item():g} of {dist.get_world_size()}{os.linesep}".encode())
    dist.destroy_process_group()

if __name__ == "__main__":
    add(sys.argv[1], sys.argv[2])
"""


@pytest.fixture(autouse=True)
def only_for_ours() -> None:
    if backend() != "rdma":
        pytest.skip("rdmarun's agent is of the backend rdma")


def run(folder: Path, script: str, *options: str) -> list[str]:
    """The sorted lines that two ranks print which run the script."""
    (folder / "member.py").write_text(MEMBER)
    (folder / "script.py").write_text(textwrap.dedent(script))
    finished = subprocess.run(
        [BIN / "rdmarun", "-np", "2", "--no-tag-output", *options, "script.py"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return sorted(finished.stdout.splitlines())


def test_torchrun_in_each_rank(tmp_path: Path) -> None:
    script = f"""
        import os, subprocess
        rank = os.environ["OUTER"] = os.environ["RANK"]
        torchrun = ["{sys.executable}", "-m", "torch.distributed.run", "--standalone"]
        nested = [*torchrun, "--nproc-per-node", "2", "member.py"]
        subprocess.run([*nested, "nested " + rank, str(10 ** int(rank))], check=True)
    """
    assert run(tmp_path, script) == ["nested 0: 4 of 2"] * 2 + ["nested 1: 40 of 2"] * 2


def test_rdmarun_in_each_rank(tmp_path: Path) -> None:
    """The outer job is elastic, the inner one is not."""
    script = f"""
        import os, subprocess
        rank = os.environ["OUTER"] = os.environ["RANK"]
        nested = ["{BIN}/rdmarun", "-np", "2", "--no-tag-output", "member.py"]
        subprocess.run([*nested, "nested " + rank, str(10 ** int(rank))], check=True)
    """
    elastic = ["--elastic", "--min-np", "1", "--max-restarts", "1"]
    assert run(tmp_path, script, *elastic) == (["nested 0: 4 of 2"] * 2 + ["nested 1: 40 of 2"] * 2)


def test_spawned_children_with_a_store_of_their_own(tmp_path: Path) -> None:
    """Before, beside and after the job's own group."""
    script = """
        import os
        import torch.multiprocessing as mp
        from member import add

        def child(index, rank, name):
            os.environ["OUTER"] = str(index)  # 0 comes first below rank 0, 1 below rank 1
            where = dict(init_method=f"file://{os.getcwd()}/{name}", rank=index, world_size=2)
            add(name, 10 ** rank, **where)

        if __name__ == "__main__":
            rank = int(os.environ["RANK"])
            mp.spawn(child, (rank, f"before {rank}"), nprocs=2)
            add("world", rank + 1)
            mp.spawn(child, (rank, f"after {rank}"), nprocs=2)
    """
    assert run(tmp_path, script) == sorted(
        ["before 0: 4 of 2", "before 1: 40 of 2", "after 0: 4 of 2", "after 1: 40 of 2"] * 2
        + ["world: 6 of 2"] * 2
    )


def test_forked_children_with_a_store_of_their_own(tmp_path: Path) -> None:
    """After the job's own group, whose secret the parent knows."""
    script = """
        import multiprocessing, os
        from member import add

        def child(index, rank):
            where = dict(init_method=f"file://{os.getcwd()}/{rank}", rank=index, world_size=2)
            add(f"forked {rank}", 10 ** rank, **where)

        rank = int(os.environ["RANK"])
        add("world", rank + 1)
        context = multiprocessing.get_context("fork")
        children = [context.Process(target=child, args=(n, rank)) for n in range(2)]
        for process in children:
            process.start()
        for process in children:
            process.join()
            assert process.exitcode == 0
    """
    assert run(tmp_path, script) == sorted(
        ["forked 0: 4 of 2", "forked 1: 40 of 2", "world: 6 of 2"] * 2
    )


def test_a_rank_with_a_store_of_its_own_meets_there(tmp_path: Path) -> None:
    """Also with its ranks in another order than the agent knows."""
    script = """
        import os
        from member import add
        rank = int(os.environ["RANK"])
        add("own", rank + 1, init_method=f"file://{os.getcwd()}/store", rank=rank, world_size=2)
        add("world", rank + 1)
        add("turned", rank + 1, init_method=f"file://{os.getcwd()}/2", rank=1 - rank, world_size=2)
    """
    assert run(tmp_path, script) == sorted(["own: 6 of 2", "turned: 6 of 2", "world: 6 of 2"] * 2)


def test_a_wrapper_that_starts_the_script_as_a_child(tmp_path: Path) -> None:
    """The child meets the others in the job's Store."""
    script = """
        import os, subprocess, sys
        value = str(1 + int(os.environ["RANK"]))
        subprocess.run([sys.executable, "member.py", "child", value], check=True)
    """
    assert run(tmp_path, script) == ["child: 6 of 2"] * 2


def test_a_wrapper_that_becomes_the_script(tmp_path: Path) -> None:
    """It stays the process that the agent started: there is no warning of a missing secret."""
    script = """
        import os, sys
        value = str(1 + int(os.environ["RANK"]))
        os.dup2(1, 2)
        os.execv(sys.executable, [sys.executable, "member.py", "the same", value])
    """
    assert run(tmp_path, script) == ["the same: 6 of 2"] * 2


def test_a_rank_and_its_child_make_no_group(tmp_path: Path) -> None:
    """Only the rank has the job's secret: both say so, and name the variable that gives one."""
    script = """
        import multiprocessing, os
        from member import add

        def join(index, name):
            where = dict(init_method=f"file://{os.getcwd()}/{name}", rank=index, world_size=2)
            try:
                add(name, 1, **where)
            except RuntimeError as error:
                assert "all ranks must have the same secret" in str(error)
                assert "RDMACOLL_SECRET_FILE" in str(error)
                os.write(1, f"refused {name}.{index}{os.linesep}".encode())

        if __name__ == "__main__":
            rank = os.environ["OUTER"] = os.environ["RANK"]
            child = multiprocessing.get_context("spawn").Process(target=join, args=(1, rank))
            child.start()
            join(0, rank)
            child.join()
    """
    refused = [f"refused {rank}.{index}" for rank in range(2) for index in range(2)]
    assert run(tmp_path, script) == refused


def test_an_orphan_that_the_agent_adopts_is_no_rank(tmp_path: Path) -> None:
    """The agent becomes its parent, as it is a rank's."""
    script = """
        import os, subprocess, sys, time
        from pathlib import Path
        rank = os.environ["RANK"]
        text = '''if True:
            import os, sys, time
            while os.getppid() == int(sys.argv[1]):
                time.sleep(0.01)
            from member import add
            name = "orphan " + sys.argv[2]
            add(name, 7, init_method=f"file://{os.getcwd()}/{name}", rank=0, world_size=1)
            open(f"done.{sys.argv[2]}", "w").close()
        '''
        middle = '''if True:
            import os, subprocess, sys
            subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid()), sys.argv[2]])
        '''
        subprocess.run([sys.executable, "-c", middle, text, rank], check=True)
        while not Path(f"done.{rank}").exists():
            time.sleep(0.02)
    """
    assert run(tmp_path, script) == ["orphan 0: 7 of 1", "orphan 1: 7 of 1"]


def test_data_loader_workers_of_a_rank(tmp_path: Path) -> None:
    script = """
        import os
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader
        dist.init_process_group("rdma")
        total = torch.zeros(1)
        for batch in DataLoader(range(8), batch_size=4, num_workers=2):
            part = batch.sum().float().reshape(1)
            dist.all_reduce(part)
            total += part
        print(f"loaded: {total.item():g}")
        dist.destroy_process_group()
    """
    assert run(tmp_path, script) == ["loaded: 56"] * 2
