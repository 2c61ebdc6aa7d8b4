"""Ranks are killed, started again by rdmarun --elastic, and join the others.

The sums are of integers: exact however many ranks share a step, so what is lost, done twice or
not undone shows. What the launcher does without torch: tests/launcher/test_elastic.py.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from world import backend

RDMARUN = str(Path(sys.executable).parent / "rdmarun")
LIMIT_S = 120

COMMON = """
import datetime, os, signal, time
from pathlib import Path

import torch
import torch.distributed as dist
from rdmacoll import elastic

SLOT, NUMBER = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
STEPS, WORLD = 30, 3

def seconds(count):
    return datetime.timedelta(seconds=count)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def seen(name):
    return Path(name).exists()

def step(state):
    rank, size = dist.get_rank(), dist.get_world_size()
    state.total += 1  # to be undone if the step fails
    parts = torch.full((1000,), float(sum(n * state.step for n in range(rank, 12, size))))
    dist.all_reduce(parts)
    state.total += parts
    state.step += 1

def until_all_are_back(state):
    while dist.get_world_size() < WORLD:
        state.commit()
        time.sleep(0.02)

def check(state):
    exact = STEPS + 66 * sum(range(STEPS))
    assert torch.equal(state.total, torch.full((1000,), float(exact)))
    assert dist.get_world_size() == WORLD
    halves = dist.new_group([0, 2])  # groups can be made in what has grown
    if dist.get_rank() != 1:
        dist.barrier(group=halves)
    dist.barrier()
    print(f"slot {SLOT}: worlds {state.worlds}")
    dist.destroy_process_group()

state = elastic.State(total=torch.zeros(1000), step=0, worlds=[])
"""


@pytest.fixture(autouse=True)
def only_for_ours() -> None:
    if backend() != "rdma":
        pytest.skip("rdmarun's elastic jobs are of the backend rdma")


def run(folder: Path, text: str, *options: str) -> str:
    (folder / "script.py").write_text(COMMON + textwrap.dedent(text))
    finished = subprocess.run(
        [RDMARUN, "-np", "3", "--min-np", "1", "--elastic", *options, "script.py"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


@pytest.mark.parametrize("preload", [[], ["--preload", "torch"]], ids=["", "preload"])
def test_two_losses_change_no_bit(tmp_path: Path, preload: list[str]) -> None:
    """The second is of the lowest rank, in steps that are not committed."""
    text = """
        def train(state):
            state.worlds = [*state.worlds, dist.get_world_size()]
            while state.step < STEPS:
                if NUMBER == 0 and (SLOT, state.step) in ((1, 5), (0, 14)):
                    die()
                if state.step == 20:
                    until_all_are_back(state)
                step(state)
                if state.step % 4 == 0:
                    state.commit()
            return "through"

        assert elastic.run(train, state) == "through"
        assert (state.worlds[0], state.worlds[1], state.worlds[-1]) == (3, 2, 3)
        check(state)
    """
    hosts = ["-H", "localhost:1,127.0.0.1:2"]
    output = run(tmp_path, text, "--max-restarts", "2", *hosts, *preload)
    assert output.count("starting rank 1 again (restart ") == 1
    assert output.count("starting rank 0 again (restart ") == 1
    for slot in range(3):
        assert f"slot {slot}: worlds [3, 2, " in output


def test_losses_while_ranks_are_let_in(tmp_path: Path) -> None:
    """First the one that joins is lost on the way, then a member is."""
    text = """
        from rdmacoll.elastic import membership, joiner
        make = joiner.make_backend

        def make_or_die(store, generation, *rest):
            if (generation, SLOT, NUMBER) in ((1, 2, 1), (2, 1, 0)):
                die()
            return make(store, generation, *rest)

        membership.make_backend = joiner.make_backend = make_or_die

        def train(state):
            state.worlds = [*state.worlds, dist.get_world_size()]
            while state.step < STEPS:
                if (SLOT, state.step, NUMBER) == (2, 5, 0):
                    die()
                if state.step == 20:
                    until_all_are_back(state)
                step(state)
                state.commit()

        elastic.run(train, state, admit_timeout=seconds(2))
        check(state)
    """
    output = run(tmp_path, text, "--max-restarts", "3")
    assert "lost again before they were let in: 1 of 3 (" in output
    assert output.count("was killed by SIGKILL") == 3
    for slot in range(3):
        assert f"slot {slot}: worlds [3, 2, 2, " in output


def test_who_comes_in_vain(tmp_path: Path) -> None:
    """Rank 1 finds nobody that commits, rank 2 that the training is over."""
    text = """
        def train(state):
            if NUMBER == 0 and SLOT > 0:
                die()
            dist.barrier()  # raises until rank 0 is alone
            while not seen("refused"):
                time.sleep(0.02)

        if NUMBER > 0 and SLOT == 1:
            try:
                elastic.run(train, state, join_timeout=seconds(1))
            except TimeoutError as error:
                print(error)
            Path("refused").touch()
        else:
            while NUMBER > 0 and not seen("over"):
                time.sleep(0.02)
            elastic.run(train, state)
            assert NUMBER == 0
            dist.destroy_process_group()
            Path("over").touch()
            print("trained alone")
    """
    output = run(tmp_path, text, "--max-restarts", "2")
    assert "have not let it in within join_timeout=1 s (nobody has set 'called/1'" in output
    assert "they do so in state.commit(): call it more often" in output
    assert output.count("trained alone") == 1


def test_a_rank_that_is_started_again_gets_in_by_run_only(tmp_path: Path) -> None:
    text = """
        try:
            dist.init_process_group("rdma")
        except RuntimeError as error:
            assert NUMBER == 1
            print(error)
            Path("refused").touch()
        else:
            assert NUMBER == 0
            if SLOT == 1:
                die()
            while not seen("refused"):
                time.sleep(0.02)
    """
    output = run(tmp_path, text, "--max-restarts", "1")
    assert "RDMACOLL_ELASTIC=joins: this rank was started again alone" in output
    assert "rdmacoll.elastic.run() only" in output


def test_a_signature_holds_for_one_key_in_one_start_of_one_job(tmp_path: Path) -> None:
    text = """
        from rdmacoll import _C
        from rdmacoll._words import Words

        def refused(call, *arguments):
            try:
                call(*arguments)
            except RuntimeError as error:
                assert "nobody of this job has signed what the Store holds under" in str(error)
                return True
            return False

        try:
            _C.sign("before there is a group")
        except RuntimeError as error:
            print(error)
        dist.init_process_group("rdma")
        store = dist.HashStore()
        ours, later = Words(store, "start 1", _C.sign), Words(store, "start 2", _C.sign)
        assert ours.hear("rank/1") is None
        ours.say("rank/1", "2 3 4")
        assert ours.hear("rank/1") == "2 3 4" and refused(later.hear, "rank/1")
        assert ours.say_first("decided/1", "yes") == ours.say_first("decided/1", "no") == "yes"
        assert refused(later.say_first, "decided/1", "no")
        signed = store.get("rank/1")
        for key, value in ("rank/2", signed), ("rank/3", signed[:-1] + b"5"), ("over", b""):
            store.set(key, value)
            assert refused(ours.hear, key), key
        store.set("decided/2", "yes")
        assert refused(ours.say_first, "decided/2", "yes")
        print("all refused")
        dist.destroy_process_group()
    """
    output = run(tmp_path, text, "--max-restarts", "1")
    assert output.count("there is no group, and so no job to sign for") == 3
    assert output.count("all refused") == 3


def test_a_stranger_in_the_store_cannot_end_the_job_for_a_joiner(tmp_path: Path) -> None:
    """It used to: the joiner left without an error, with status 0."""
    text = """
        if NUMBER == 0:
            dist.init_process_group("rdma")
            if SLOT == 1:
                address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
                dist.TCPStore(*address, is_master=False).set("elastic/over", "")
                die()
            while not seen("refused"):
                time.sleep(0.02)
        else:
            try:
                elastic.run(lambda state: None, state)
            except RuntimeError as error:
                print(error)
            Path("refused").touch()
    """
    output = run(tmp_path, text, "--max-restarts", "1")
    assert "nobody of this job has signed what the Store holds under 'over'" in output
