"""`rdmacoll tune` as users run it: its command line, a real run, and a job that takes its file."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest
from bench_process import BIN, run

from rdmacoll.bench.options import BadArgument
from rdmacoll.tune.options import COLLECTIVES, EVERYWHERE, Options, checked, describe

RDMARUN = [str(BIN / "rdmarun"), "-np", "2", "--no-tag-output"]


def tune(*arguments: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "rdmacoll", "tune", *arguments, folder=folder, **env)


def parse(*argv: str) -> Options:
    parser = argparse.ArgumentParser(exit_on_error=False)
    describe(parser)
    return checked(parser.parse_args(argv))


def test_defaults() -> None:
    options = parse("-np", "2")
    assert options.collectives == list(COLLECTIVES)
    assert options.sizes_bytes == [2**n for n in range(3, 25)]
    assert options.out == Path("tuning.txt")
    assert parse("--sizes", "8,4,16").elements("all_gather", 3) == [3]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--collectives", "barrier"], "--collectives 'barrier': unknown; there are all_reduce"),
        (["-np", "1"], "-np 1: a collective takes at least 2 ranks"),
        (["--rounds", "0"], "--rounds 0: give 1 or more"),
        (["--sizes", "2"], "2 B are less than one element of float32"),
        (["--out", "nowhere/x"], "--out nowhere/x: there is no folder nowhere; make it"),
    ],
)
def test_wrong_arguments(argv: list[str], says: str) -> None:
    with pytest.raises(BadArgument) as error:
        parse(*argv)
    assert says in str(error.value)


def test_as_the_command_says_it(tmp_path: Path) -> None:
    done = tune(folder=tmp_path)
    assert done.returncode == 2
    assert "rdmacoll tune: error: how many ranks? give -np N" in done.stderr
    done = tune(folder=tmp_path, RANK="0", WORLD_SIZE="1")
    assert done.returncode == 2
    assert "this job has 1 rank, and a collective takes at least 2; start more" in done.stderr


WHAT_IS_TAKEN = """
import sys
import torch
import torch.distributed as dist

dist.init_process_group("rdma")
backend = dist.group.WORLD._get_backend(torch.device("cpu"))
taken = [backend._algorithm("all_reduce", size) for size in (4, 16, 17, 1 << 30)]
tensor = torch.ones(1 << 16)
dist.all_reduce(tensor)
assert tensor.eq(2).all()
if dist.get_rank() == 0:
    print(*taken)
dist.destroy_process_group()
"""


def taken(folder: Path, table: Path) -> list[str]:
    script = folder / "taken.py"
    script.write_text(WHAT_IS_TAKEN)
    done = run(*RDMARUN, str(script), folder=folder, RDMACOLL_TUNING=str(table))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


def test_a_run_and_a_job_with_its_file(tmp_path: Path) -> None:
    what = ["--sizes", "4:4K:32", "--rounds", "1", "--out", "node.tuning"]
    # What is set for jobs has no say in what is measured.
    set_before = {"RDMACOLL_TUNING": str(tmp_path / "nowhere"), "RDMACOLL_ALGO": "ring"}
    done = tune("-np", "2", *what, folder=tmp_path, **set_before)
    assert done.returncode == 0, done.stdout + done.stderr
    table = tmp_path / "node.tuning"
    assert done.stdout.splitlines()[-1].endswith(f"RDMACOLL_TUNING={table}")
    rows = [line for line in table.read_text().splitlines() if line and line[0] != "#"]
    assert "gather: direct is all there is here" in done.stdout
    for collective in EVERYWHERE:
        of_it = [row.split() for row in rows if row.startswith(f"{collective} mapped world=2 ")]
        assert of_it and of_it[-1][3] == "up_to=any", rows
        assert f"{collective} " in done.stdout
    all_reduce = [row.split() for row in rows if row.startswith("all_reduce ")]
    assert taken(tmp_path, table)[-1] == all_reduce[-1][4]


def test_a_job_takes_what_the_table_says(tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text(
        "all_reduce mapped world=2 up_to=4 tree\n"
        "all_reduce mapped world=2 up_to=16 ring  # by hand\n"
        "all_reduce mapped world=2 up_to=any halving_doubling\n"
    )
    expected = ["tree", "ring", "halving_doubling", "halving_doubling"]
    assert taken(tmp_path, table) == expected
    table.write_text("all_reduce mapped world=3 up_to=any tree\n")
    assert taken(tmp_path, table) == ["one_shot", "one_shot", "one_shot", "two_shot"]
