"""The command line: what it is made into, and the line that a wrong one is told with, at once."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from pathlib import Path

import pytest
from bench_process import bench, run

from rdmacoll.base.byte_sizes import text_of_size
from rdmacoll.bench.options import BadArgument, Options, checked, describe
from rdmacoll.bench.sizes import parse_sizes


def parse(*argv: str) -> Options:
    parser = argparse.ArgumentParser(exit_on_error=False)
    describe(parser)
    return checked(parser.parse_args(argv))


def test_defaults() -> None:
    options = parse("-np", "2")
    assert (options.np, options.operations, options.systems) == (2, ["all_reduce"], ["rdma"])
    assert options.sizes_bytes == [4**n for n in range(1, 14)]
    assert (options.dtype, options.reduction, options.check) == ("float32", "sum", True)
    assert options.memory == "ordinary"


def test_everything() -> None:
    options = parse("all", "--vs", "gloo,mpi,gloo", "--sizes", "4,64K", "--dtype", "int32")
    assert options.operations[0] == "all_reduce" and options.operations[-1] == "barrier"
    assert len(options.operations) == 10
    assert options.systems == ["rdma", "gloo", "mpi"]
    assert options.sizes_bytes == [4, 64 << 10]


def test_sizes() -> None:
    assert parse_sizes("4:256M:4")[-1] == 256 << 20
    assert parse_sizes("1K:5K:2") == [1024, 2048, 4096]
    assert parse_sizes("1g,3k,7") == [1 << 30, 3 << 10, 7]
    assert [text_of_size(size) for size in (4, 1536, 1 << 30)] == ["4 B", "1.5 KB", "1 GB"]


def test_sizes_become_whole_parts() -> None:
    assert parse("--sizes", "4,8,16,100").elements("all_reduce", 3) == [1, 2, 4, 25]
    assert parse("--sizes", "4,8,16,100").elements("all_gather", 3) == [3, 24]
    assert parse("--sizes", "4,8,16,100").elements("barrier", 3) == [0]


WRONG = [
    (["all_reduse"], "operation 'all_reduse': unknown; there are all_reduce, broadcast"),
    (["all", "barrier"], "operation 'all': unknown"),
    (["--memory", "gpu"], "--memory 'gpu': unknown; there are ordinary, heap"),
    (["-np", "1"], "-np 1: a collective takes at least 2 ranks"),
    (["--sizes", "4:1M"], "--sizes 4:1M: a range is from:to:factor"),
    (["--sizes", "4:1M:1"], "the factor '1' is not a whole number of 2 or more"),
    (["--sizes", "1M:4:4"], "the range ends (4) before it begins (1M)"),
    (["--sizes", "4X"], "--sizes 4X: '4X' is not a size; give bytes, or 64K"),
    (["--sizes", ""], "'' is not a size"),
    (["--sizes", "0"], "0 bytes are nothing to measure"),
    (
        ["--sizes", "4", "--dtype", "float64"],
        "4 B are less than one element of float64",
    ),
    (["--dtype", "float8"], "--dtype 'float8': unknown; there are float32"),
    (["--op", "avg"], "--op 'avg': unknown; there are sum, product, min, max"),
    (["--vs", "nccl"], "--vs 'nccl': unknown; there are gloo, mpi"),
    (["--vs", "mpi", "--dtype", "bfloat16"], "--dtype bfloat16: MPI has no such type"),
    (["--mpi", "openmpi"], "--mpi openmpi: MPI is not measured; add --vs mpi"),
    (["--vs", "mpi", "--mpi", "lam"], "--mpi 'lam': unknown; there are mpich, openmpi, impi"),
    (["--rounds", "0"], "--rounds 0: give 1 or more"),
    (["--in-place", "all_to_all", "gather"], "--in-place: all_to_all, gather cannot"),
    (["--in-place", "reduce_scatter", "--vs", "mpi"], "another part of the tensor"),
    (["--json", "nowhere/x.json"], "--json nowhere/x.json: there is no folder nowhere; make it"),
    (["--json", "."], "--json .: it cannot be written"),
    (["--plot", "x.pdf"], "--plot x.pdf: the name must end in .png or .svg"),
    (["--plot", "x.png", "barrier"], "a barrier has no size to be drawn over"),
]


@pytest.mark.parametrize(("argv", "says"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_arguments(argv: list[str], says: str) -> None:
    with pytest.raises(BadArgument) as error:
        parse(*argv)
    assert says in str(error.value)


def test_as_the_command_says_it(tmp_path: Path) -> None:
    done = bench("-np", "2", "--dtype", "float8", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "rdmacoll bench: error: --dtype 'float8': unknown" in done.stderr


def test_without_a_number_of_ranks(tmp_path: Path) -> None:
    done = bench(folder=tmp_path)
    assert done.returncode == 2
    assert "how many ranks? give -np N" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--vs", "mpi"], "start it outside of a job: rdmacoll bench -np 3 --vs mpi"),
        (["-np", "2"], "-np 2: this job has 3 ranks already; leave -np out"),
    ],
)
def test_inside_a_job(arguments: list[str], says: str, tmp_path: Path) -> None:
    done = bench(*arguments, folder=tmp_path, RANK="0", WORLD_SIZE="3")
    assert done.returncode == 2
    assert says in done.stderr


def test_plot_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BadArgument, match=r"needs matplotlib; pip install 'rdmacoll\[bench\]'"):
        parse("--plot", "x.png")


def test_an_mpi_that_is_missing(tmp_path: Path) -> None:
    """Of this MPI there is none: the folder on PATH has an mpiexec that is another's."""
    fake = tmp_path / "mpiexec"
    fake.write_text("#!/bin/sh\necho HYDRA\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    path = os.pathsep.join([str(tmp_path), "/usr/bin", "/bin"])
    arguments = ["-np", "2", "--vs", "mpi", "--mpi", "impi"]
    done = bench(*arguments, folder=tmp_path, PATH=path)
    assert done.returncode == 2
    assert "is Intel MPI's" in done.stderr
    assert f"{fake} is MPICH's" in done.stderr
    assert "`pip install --no-deps --prefix ~/impi impi-rt`" in done.stderr


def test_the_library_of_another_mpi(tmp_path: Path) -> None:
    """Without an mpiexec of its own a library knows of one process."""
    worker = [sys.executable, "-m", "rdmacoll.bench.worker", "-np", "2", "--vs", "mpi"]
    done = run(*worker, folder=tmp_path)
    assert done.returncode != 0
    assert "mpiexec has started 2 ranks, but" in done.stderr
    assert "sees 1: it is of another MPI than mpiexec; set MPI4PY_LIBMPI" in done.stderr


def test_loads_no_torch_to_say_so(tmp_path: Path) -> None:
    code = "import rdmacoll.bench.command, sys; print('torch' in sys.modules)"
    assert run(sys.executable, "-c", code, folder=tmp_path).stdout == "False\n"
