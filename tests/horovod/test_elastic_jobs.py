"""hvd.elastic where ranks are killed, come back, or are all lost.

Floor: tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from job_runner import Jobs

TRAIN = """
    import os, signal, time
    import torch
    import rdmacoll.horovod as hvd

    hvd.init()
    torch.manual_seed(hvd.rank())
    net = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
    state = hvd.elastic.TorchState(net, optimizer, step=0, log=[])
    sizes = []
    state.register_reset_callbacks([lambda: sizes.append(hvd.size())])
    is_new = os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0"

    def may_die():
        if is_new and state.step == 5 and int(os.environ["RANK"]) in DIE:
            os.kill(os.getpid(), signal.SIGKILL)

    @hvd.elastic.run
    def train(state):
        while state.step < 5 or (WAIT_FOR and hvd.size() < WAIT_FOR) or len(state.log) < 20:
            optimizer.zero_grad()
            torch.manual_seed(100 * state.step + hvd.rank())
            net(torch.randn(8, 4)).square().mean().backward()
            may_die()
            optimizer.step()
            hvd.allreduce(torch.ones(3), name="loss")
            state.step += 1
            state.log.append(state.step)
            time.sleep(0.02)
            state.commit()
        return "done"

    said = train(state)
    flat = torch.cat([p.detach().flatten() for p in net.parameters()])
    everyones = hvd.allgather(flat.unsqueeze(0))
    assert torch.equal(everyones, everyones[0].expand_as(everyones)), "ranks hold other bits"
    assert state.log == list(range(1, state.step + 1)), "a step was lost, or made twice"
    print(said, hvd.size(), sizes, flush=True)
"""


@pytest.fixture
def job_folder(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path)


def said_by(jobs: Jobs, text: str, *options: str) -> tuple[int, list[str], str]:
    done = jobs.run_script(text, *options)
    return done.returncode, sorted(done.stdout.splitlines()), done.stderr


def train(die: set[int], wait_for: int) -> str:
    return f"    DIE, WAIT_FOR = {die}, {wait_for}\n{TRAIN}"


@pytest.mark.parametrize("die", [{0}, {1}, {1, 2}], ids=str)
def test_the_others_go_on(job_folder: Jobs, die: set[int]) -> None:
    code, said, errors = said_by(job_folder, train(die, 0), "-np", "4", "--min-np", "2")
    left = [rank for rank in range(4) if rank not in die]
    assert [line.split()[:3] for line in said] == [
        [f"[{rank}]:", "done", str(len(left))] for rank in left
    ], errors
    assert code == 0, errors


def test_only_the_group_of_names_knows_who_is_lost(job_folder: Jobs) -> None:
    """Rank 0 is given up where others wait for it to hear of a name; no tensor is under way."""
    text = """
    import os, signal, sys, time
    from pathlib import Path
    import torch
    import rdmacoll.horovod as hvd

    hvd.init()
    pids = hvd.allgather_object(os.getpid())
    if hvd.rank() == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    try:
        hvd.allreduce(torch.ones(3), name="for nobody")
    except hvd.HorovodInternalError as error:
        cause = error.__cause__
        sys.stdout.write(f"{type(cause).__name__} {cause.dead_ranks}\\n")
    sys.stdout.flush()
    Path(f"heard.{hvd.rank()}").touch()
    # A rank that ends before the others have heard is one more dead rank to them.
    while len(list(Path().glob("heard.*"))) < 3:
        time.sleep(0.02)
    os.kill(pids[0], signal.SIGKILL)
    os._exit(0)
    """
    options = ("-np", "4", "--min-np", "1", "-x", "RDMACOLL_STALL_TIMEOUT_MS=5000")
    _, said, errors = said_by(job_folder, text, *options)
    assert said == [f"[{rank}]: DeadRankError (0,)" for rank in (1, 2, 3)], errors


@pytest.mark.parametrize("rank", [0, 2])
def test_a_lost_rank_comes_back(job_folder: Jobs, rank: int) -> None:
    options = ("-np", "3", "--min-np", "2", "--max-restarts", "1", "--elastic")
    code, said, errors = said_by(job_folder, train({rank}, 3), *options)
    assert code == 0, errors
    assert [line.split()[1:3] for line in said] == [["done", "3"]] * 3, errors
    assert said[rank].endswith(" []"), "it has seen no change itself"


def test_the_default_group_of_a_script_is_refused(job_folder: Jobs) -> None:
    text = """
    import torch.distributed as dist
    import rdmacoll.horovod as hvd

    dist.init_process_group("rdma")
    hvd.init()
    state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank)
    try:
        hvd.elastic.run(lambda state: None)(state)
    except RuntimeError as error:
        print(error)
    """
    code, said, errors = said_by(job_folder, text, "-np", "2")
    assert code == 0, errors
    assert len(said) == 2 and all("leave that call out" in line for line in said)
