"""Snapshots: one job writes them, others with other numbers of workers and servers go on from there
as it did, bit for bit; torch alone reads them. One worker pushes, so that bits are determined.

Floor: tests.
"""

from __future__ import annotations

import itertools
import math
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import snapshot_cases
import torch
from case_job import Outcomes, cases_of
from job_runner import Jobs, clean_jobs
from torch.distributed import checkpoint
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from rdmacoll.ps.saved_pieces import boxes_of

WORKER = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import lost
import torch
import torch.distributed as dist
from rdmacoll import ps
from rdmacoll.ps import saved_pieces

RANK = int(os.environ["RANK"])
torch.set_num_threads(1)
dist.init_process_group("rdma")
kv = ps.KV(timeout=30.0)
SHAPES = {{"momentum": (5, 61_000), "adam": (2, 331, 1201), "added": (9 * 256 * 1024 + 5,)}}
SHAPES["one"] = ()
RULES = {{"momentum": ps.SGD(lr=0.1, momentum=0.9, dampening=0.5), "adam": ps.Adam(lr=0.1)}}
for name, shape in SHAPES.items():
    kv.init(name, torch.zeros(shape), optimizer=RULES.get(name))
ROWS = {{"sums": ps.RowwiseAdagrad(lr=0.1), "adams": ps.Adam(lr=0.1), "plain": None, "none": None}}
for name, rule in ROWS.items():
    kv.init_rows(name, dim=3, optimizer=rule, initial=ps.Uniform(-1, 1))
IDS = torch.arange(-700, 700) * 12_345

def push(first, end):
    if RANK == 0:
        generator = torch.Generator().manual_seed(first)
        draw = lambda shape: torch.randn(shape, generator=generator)
        for step in range(first, end):
            kept = [kv.push(name, draw(shape)) for name, shape in SHAPES.items()]
            ids = IDS[step :: 2]
            kept += [kv.row_push(name, ids, draw((len(ids), 3))) for name in [*ROWS][:3]]
            kv.wait(*kept)
    dist.barrier()

def found():
    return {{name: kv.pull(name) for name in SHAPES}} | {{
        name: kv.row_pull(name, IDS) for name in [*ROWS][:3]
    }}

def check(path):
    wanted, here = torch.load(path), found()
    assert wanted.keys() == here.keys()
    for name, values in wanted.items():
        assert torch.equal(values, here[name]), name
    print("equal", flush=True)

def leave():
    dist.barrier()
    dist.destroy_process_group()
"""


def run(jobs: Jobs, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    done = jobs.run(*options, jobs.python, jobs.script(WORKER + textwrap.dedent(text)))
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a snapshot `at 3`, and what was there then and three steps later."""
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        text = """
            push(0, 3)
            ps.snapshot("at 3")
            if RANK == 0:
                torch.save(found(), "3.pt")
            push(3, 6)
            if RANK == 0:
                torch.save(found(), "6.pt")
            leave()
        """
        run(jobs, text, "-np", "2", "--servers", "2")
        return jobs.folder


@pytest.fixture(scope="module")
def taken_by_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        text = """
            push(0, 3)
            ps.snapshot("at 3", alone=True)
            leave()
        """
        run(jobs, text, "-np", "1", "--servers", "3")
        return jobs.folder


@pytest.mark.parametrize(
    "numbers",
    [pytest.param((1, 1), marks=pytest.mark.nightly), (3, 3)],
    ids=lambda n: "{}w{}s".format(*n),
)
def test_another_job_goes_on(taken: Path, jobs: Jobs, numbers: tuple[int, int]) -> None:
    workers, servers = numbers
    text = f"""
        push(7, 9)  # of what is there nothing is left
        ps.restore({str(taken / "at 3")!r})
        check({str(taken / "3.pt")!r})
        dist.barrier()
        push(3, 6)
        check({str(taken / "6.pt")!r})
        leave()
    """
    done = run(jobs, text, "-np", str(workers), "--servers", str(servers))
    assert done.stdout.count("equal") == 2 * workers


def _loaded(path: Path, to: Path) -> dict[str, Any]:
    dcp_to_torch_save(path, to)
    loaded: dict[str, Any] = torch.load(to)
    return loaded


def test_torch_reads_it(taken: Path, tmp_path: Path) -> None:
    loaded = _loaded(taken / "at 3", tmp_path / "all.pt")
    there = torch.load(taken / "3.pt")
    for name in ("momentum", "adam", "added", "one"):
        assert torch.equal(loaded[name], there[name]), name
        assert loaded[f"{name}.state/pushes"].unique().tolist() == [3]
    assert loaded["adam.state/exp_avg_sq"].shape == loaded["adam"].shape
    assert loaded["adam.state/exp_avg_sq"].min() > 0
    ids = torch.arange(-700, 700) * 12_345
    for name in ("sums", "adams", "plain"):
        order = loaded[f"{name}.ids"].argsort()
        pulled = there[name]
        assert loaded[f"{name}.ids"][order].tolist() == ids.tolist()
        assert torch.equal(loaded[name][order], pulled)
    assert loaded["sums.state/sum"].shape == ids.shape
    assert loaded["none"].shape == (0, 3)
    wanted = {
        f"{name}{end}"
        for name, ends in {
            "momentum": ["", ".state/momentum_buffer"],
            "adam": ["", ".state/exp_avg", ".state/exp_avg_sq"],
            "added": [""],
            "one": [""],
            "sums": ["", ".ids", ".state/sum"],
            "adams": ["", ".ids", ".state/exp_avg", ".state/exp_avg_sq"],
            "plain": ["", ".ids"],
            "none": ["", ".ids"],
        }.items()
        for end in [*ends, ".state/pushes"]
    }
    assert loaded.keys() == wanted
    one = {"adam": torch.empty(there["adam"].shape)}
    checkpoint.load(one, checkpoint_id=taken / "at 3", no_dist=True)
    assert torch.equal(one["adam"], there["adam"])


@pytest.mark.nightly
def test_one_worker_writes_the_same(taken: Path, taken_by_one: Path, tmp_path: Path) -> None:
    ours = _loaded(taken / "at 3", tmp_path / "ours.pt")
    other = _loaded(taken_by_one / "at 3", tmp_path / "other.pt")
    assert ours.keys() == other.keys()
    for name, values in _by_ids(ours).items():
        assert torch.equal(values, _by_ids(other)[name]), name


def _by_ids(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rows in the order of their ids: in a snapshot they are in that of buckets, which depend on
    the order in which a job makes its tables."""
    ordered = dict(tensors)
    for table in (name.removesuffix(".ids") for name in tensors if name.endswith(".ids")):
        order = tensors[f"{table}.ids"].argsort()
        for name in tensors:
            if name == table or name.startswith((f"{table}.ids", f"{table}.state/")):
                ordered[name] = tensors[name][order]
    return ordered


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["DensePiece", "RowPiece"])
@pytest.mark.parametrize("method", ["read", "write"])
def test_a_server_is_lost_meanwhile(jobs: Jobs, kind: str, method: str) -> None:
    text = f"""
        push(0, 3)
        torch.save(found(), f"{{RANK}}.pt")
        before = saved_pieces.{kind}.{method}
        calls = []
        def lose(self, *args):
            calls.append(self)
            if len(calls) == 2:
                lost.kill(1)
            return before(self, *args)
        if "{method}" == "read" and RANK == 0:
            saved_pieces.{kind}.read = lose
        ps.snapshot("kept")
        push(3, 4)
        if "{method}" == "write" and RANK == 0:
            saved_pieces.{kind}.write = lose
        ps.restore("kept")
        assert RANK > 0 or len(calls) >= 2
        check(f"{{RANK}}.pt")
        leave()
    """
    done = run(jobs, text, "-np", "2", "--servers", "3")
    assert done.stdout.count("equal") == 2
    assert "server 1" in done.stderr


@pytest.mark.parametrize("shape", [(), (7,), (2, 31), (5, 3, 2, 3), (4, 1, 6), (1, 1)])
def test_boxes_are_the_elements_in_their_order(shape: tuple[int, ...]) -> None:
    count = math.prod(shape)
    whole = torch.arange(count).view(shape)
    for first, end in itertools.combinations(range(count + 1), 2):
        found: list[int] = []
        for offsets, sizes, begin in boxes_of(first, end, shape):
            assert begin == len(found)
            box = whole
            for dim, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
                box = box.narrow(dim, offset, size)
            found += box.flatten().tolist()
        assert found == list(range(first, end))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, snapshot_cases, workers=2, servers=2)


@pytest.mark.parametrize("case", cases_of(snapshot_cases))
def test_snapshots(outcomes: Outcomes, case: str) -> None:
    outcomes.check(case)
