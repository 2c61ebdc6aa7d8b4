"""`rdmacoll bench transfer`: its command line, its figures, and whole runs on few bytes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from bench_process import BIN, assert_refused, bench, run

from rdmacoll.bench.frame.interval import interval
from rdmacoll.bench.options import BadArgument
from rdmacoll.bench.transfer.measure import Turns
from rdmacoll.bench.transfer.options import Options, checked, describe
from rdmacoll.bench.transfer.result import row_of

WAYS = ["rdma", "rdma-again", "rdma-ordinary", "flag", "gloo", "torch-rpc", "grpc"]
QUICK = ["--rounds", "2", "--sizes", "1000,300K"]


def parse(*argv: str) -> Options:
    parser = argparse.ArgumentParser(exit_on_error=False)
    describe(parser)
    return checked(parser.parse_args(argv))


def test_options() -> None:
    options = parse("--vs", "gloo,grpc,gloo", "--sizes", "1K,4K,1K")
    assert options.ways == [*WAYS[:4], "gloo", "grpc"]
    assert options.sizes_bytes == [1 << 10, 4 << 10]
    assert parse().sizes_bytes == [4**n for n in range(5, 14)]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--vs", "mpi"], "--vs 'mpi': unknown; there are grpc, torch-rpc, gloo"),
        (["--sizes", "0"], "0 bytes are nothing to measure"),
        (["--rounds", "0"], "--rounds 0: give 1 or more"),
        (["--json", "nowhere/x.json"], "there is no folder nowhere; make it"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_arguments(argv: list[str], says: str) -> None:
    with pytest.raises(BadArgument) as error:
        parse(*argv)
    assert says in str(error.value)


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BadArgument, match=r"needs grpcio; pip install 'rdmacoll\[bench\]'"):
        parse("--vs", "grpc")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["transfer", "--vs", "nccl"], "rdmacoll bench transfer: error: --vs 'nccl': unknown"),
        (["--vs", "gloo", "transfer"], "it comes first: rdmacoll bench transfer"),
        (["transfer"], "these ways take 8 processes, and this job has 3 ranks"),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_as_the_command_says_it(arguments: list[str], says: str, tmp_path: Path) -> None:
    assert_refused(arguments, says, tmp_path)


def test_ratios_are_of_the_same_round() -> None:
    ours = [Turns(sends_us=[1, 2, 4], cpu_us=[1, 1, 1]), Turns(cpu_us=[1, 1, 3])]
    theirs = [Turns(sends_us=[10, 10, 10], cpu_us=[2, 8, 4]), Turns(cpu_us=[2, 2, 4])]
    row = row_of(1000, ["rdma", "other"], [*ours, *theirs])
    other = row.ways["other"]
    assert (other.us, other.cpu_us, other.cpu_s_per_gb) == (10, 8, 8)
    assert (other.slower.median, other.slower.low, other.slower.high) == (5, 2.5, 10)
    assert (other.cpu.median, other.cpu.low, other.cpu.high) == (2, 2, 5)
    assert row.ways["rdma"].slower.median == 1


def test_how_sure_a_median_is() -> None:
    """Of 9 values the median lies outside of the 2nd and the 8th in 4 % of all drawings."""
    assert interval([float(n) for n in range(9)]) == (1, 7)
    assert interval([3.0, 1.0]) == (1, 3)


def test_all_ways(tmp_path: Path) -> None:
    done = bench(
        *("transfer", "--vs", "gloo,torch-rpc,grpc", "--json", "result.json", *QUICK),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert set(result["versions"]) == {"rdmacoll", "torch", "grpcio"}
    assert [row["bytes"] for row in result["rows"]] == [1000, 300 << 10]
    for row in result["rows"]:
        assert list(row["ways"]) == WAYS
        for one in row["ways"].values():
            assert one["us"] > 0 and one["cpu_us"] > 0
            assert 0 < one["slower"]["low"] <= one["slower"]["median"] <= one["slower"]["high"]
            assert one["cpu_s_per_gb"] == pytest.approx(one["cpu_us"] / row["bytes"] * 1e3)
            assert len(one["turns_us"]) == 2 and one["transfers"] >= 4
        assert row["ways"]["rdma"]["counted"] == {"registrations": 0, "control_messages": 0}
        assert row["ways"]["grpc"]["form"] in ("tcp", "unix", "stream")
    lines = done.stdout.splitlines()
    assert lines[1].startswith("load ") and "every byte checked" in lines[1]
    for row in result["rows"]:
        for name, one in row["ways"].items():
            us = f"{one['us']:.1f}"
            assert any(name in line.split() and us in line.split() for line in lines), (name, us)


WRONG_BYTES = """
import sys
from rdmacoll.__main__ import main
from rdmacoll.bench.transfer.gloo import Gloo

right = Gloo.serve

def wrong(self, count):
    right(self, count)
    self.target[-1] += 1

Gloo.serve = wrong
sys.argv = ["rdmacoll", "bench", "transfer", *sys.argv[1:]]
main()
"""


def test_wrong_bytes(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text(WRONG_BYTES)
    command = [str(BIN / "rdmarun"), "-np", "10", str(script), "--vs", "gloo", *QUICK]
    done = run(*command, folder=tmp_path)
    assert done.returncode != 0
    assert "gloo transfers something else: of 1000 bytes byte 999 is " in done.stderr
