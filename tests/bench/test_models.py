"""`rdmacoll bench models`: its command line, its figures, its maths, and a whole run."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
import torch
from bench_process import BIN, assert_refused, bench, run

from rdmacoll.bench.models.flat import layout_of
from rdmacoll.bench.models.measure import Turns
from rdmacoll.bench.models.models import MODELS as MADE
from rdmacoll.bench.models.options import MODELS, Options, checked, describe
from rdmacoll.bench.models.result import row_of
from rdmacoll.bench.models.training import RATE, Computation, module_of, trained_alone
from rdmacoll.bench.options import BadArgument

WAYS = ["rdma", "grpc", "torch-rpc"]
QUICK = ["--rounds", "1", "--models", "fcn-5,lstm"]


def parse(*argv: str) -> Options:
    parser = argparse.ArgumentParser(exit_on_error=False)
    describe(parser)
    return checked(parser.parse_args(argv))


def test_options() -> None:
    options = parse("--vs", "torch-rpc,grpc,grpc", "--models", "lstm,fcn-5,lstm", "--workers", "2")
    assert options.ways == ["rdma", "torch-rpc", "grpc"]
    assert options.models == ["lstm", "fcn-5"]
    assert options.processes_of_a_way == 3
    assert parse().models == list(MODELS) == list(MADE)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--vs", "gloo"], "--vs 'gloo': unknown; there are grpc, torch-rpc"),
        (["--models", "gpt"], "--models 'gpt': unknown; there are fcn-5, vgg-head, lstm, incep"),
        (["--workers", "0"], "--workers 0: give 1 or more"),
        (["--rounds", "0"], "--rounds 0: give 1 or more"),
        (["--json", "nowhere/x.json"], "there is no folder nowhere; make it"),
        (["--plot", "x.gif"], "--plot x.gif: the name must end in .png or .svg"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_arguments(argv: list[str], says: str) -> None:
    with pytest.raises(BadArgument) as error:
        parse(*argv)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["models", "--vs", "gloo"], "rdmacoll bench models: error: --vs 'gloo': unknown"),
        (["--vs", "gloo", "models"], "it comes first: rdmacoll bench models"),
        (["models"], "these ways take 2 processes, and this job has 3 ranks"),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_as_the_command_says_it(arguments: list[str], says: str, tmp_path: Path) -> None:
    assert_refused(arguments, says, tmp_path)


def test_training_alone_is_plain_sgd_over_all_batches() -> None:
    """As torch.optim does it with the mean of the workers' losses, up to rounding."""
    module = module_of("fcn-5")
    optimizer = torch.optim.SGD(module.parameters(), RATE)
    elements = layout_of(module).elements
    batches = [
        Computation("fcn-5", worker, torch.zeros(elements), torch.zeros(elements))
        for worker in range(2)
    ]
    for _ in range(3):
        optimizer.zero_grad()
        losses = [
            torch.nn.functional.cross_entropy(module(each.batch), each.classes) for each in batches
        ]
        (sum(losses, torch.zeros(())) / 2).backward()
        optimizer.step()
    trained = trained_alone("fcn-5", workers=2, steps=3)
    layout = layout_of(module)
    for first, parameter in zip(layout.firsts, module.parameters(), strict=True):
        mine = trained[first : first + parameter.numel()].view(parameter.shape)
        torch.testing.assert_close(mine, parameter.detach())
    assert not torch.equal(trained, trained_alone("fcn-5", workers=2, steps=2))


@pytest.mark.parametrize("model", MODELS)
def test_a_step_changes_every_tensor(model: str) -> None:
    module = module_of(model)
    layout = layout_of(module)
    trained = trained_alone(model, workers=1, steps=1)
    for first, parameter in zip(layout.firsts, module.parameters(), strict=True):
        mine = trained[first : first + parameter.numel()].view(parameter.shape)
        assert mine.isfinite().all() and not torch.equal(mine, parameter)


def test_a_step_has_three_parts() -> None:
    """Times and ratios are of the same round; of several workers the slowest's count."""
    ours = [
        Turns(steps=5, part_ms=[1, 1], cpu_ms=[1, 1]),
        Turns(step_ms=[10, 20], part_ms=[4, 5], cpu_ms=[4, 5]),
        Turns(step_ms=[9, 21], part_ms=[5, 4], cpu_ms=[5, 4]),
    ]
    theirs = [
        Turns(steps=5, part_ms=[2, 2], cpu_ms=[5, 5]),
        Turns(step_ms=[40, 42], part_ms=[4, 4], cpu_ms=[25, 15], form="unix"),
        Turns(step_ms=[30, 32], part_ms=[4, 4], cpu_ms=[10, 10], form="unix"),
    ]
    row = row_of("lstm", [100, 300], ["rdma", "grpc"], [*ours, *theirs])
    assert (row.tensors, row.bytes, row.mean_tensor_bytes) == (2, 1600, 800)
    assert row.bytes_per_step == 2 * 2 * 1600
    one, other = row.ways["rdma"], row.ways["grpc"]
    assert (one.step_ms, one.steps, one.slower.median) == (15.5, 10, 1)
    assert (one.computation_ms, one.update_ms, one.communication_ms) == (5, 1, 9.5)
    assert (other.communication_ms, other.cpu_ms, other.form) == (35, 35, "unix")
    assert (other.slower.median, other.slower.low, other.slower.high) == (3, 2, 4)


def test_all_ways(tmp_path: Path) -> None:
    done = bench(
        *("models", "--vs", "grpc,torch-rpc", "--workers", "2", *QUICK),
        *("--json", "result.json", "--plot", "result.svg"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert set(result["versions"]) == {"rdmacoll", "torch", "grpcio"}
    assert [row["model"] for row in result["rows"]] == ["fcn-5", "lstm"]
    lines = done.stdout.splitlines()
    for row in result["rows"]:
        assert list(row["ways"]) == WAYS
        assert row["bytes_per_step"] == 4 * row["bytes"]
        for name, one in row["ways"].items():
            assert min(one["computation_ms"], one["update_ms"], one["cpu_ms"]) > 0
            assert one["communication_ms"] < one["step_ms"]
            assert one["steps_per_s"] == pytest.approx(1e3 / one["step_ms"])
            assert 0 < one["slower"]["low"] <= one["slower"]["median"] <= one["slower"]["high"]
            assert len(one["turns_ms"]) == 1
            per_s = f"{one['steps_per_s']:.1f}"
            assert any(name in line.split() and per_s in line.split() for line in lines)
        assert len({one["steps"] for one in row["ways"].values()}) == 1
        assert row["ways"]["grpc"]["form"] in ("tcp", "unix", "stream")
    drawn = (tmp_path / "result.svg").read_text()
    for text in ("rdmacoll", "gRPC", "torch RPC", "fcn-5", "lstm", "communication"):
        assert text in drawn


WRONG_GRADIENTS = """
import sys
from rdmacoll.__main__ import main
from rdmacoll.bench.models.rdma import Remote

right = Remote.push

def wrong(self):
    self.gradients[0][7] += 1
    right(self)

Remote.push = wrong
sys.argv = ["rdmacoll", "bench", "models", *sys.argv[1:]]
main()
"""


def test_wrong_gradients(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text(WRONG_GRADIENTS)
    done = run(str(BIN / "rdmarun"), "-np", "2", str(script), *QUICK, folder=tmp_path)
    assert done.returncode != 0
    assert "rdma trains something else: parameter " in done.stderr
    assert "without transfers" in done.stderr


WRONG_LATER = """
import sys
from rdmacoll.__main__ import main
from rdmacoll.bench.models.measure import Meter
from rdmacoll.bench.models.torch_rpc_way import TorchRpc

right = Meter._check_all

def wrong(self, member):
    if isinstance(self._way, TorchRpc) and member.holder:
        member.holder.parameters[3] += 1
    right(self, member)

Meter._check_all = wrong
sys.argv = ["rdmacoll", "bench", "models", *sys.argv[1:]]
main()
"""


def test_ways_that_differ(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text(WRONG_LATER)
    command = [str(BIN / "rdmarun"), "-np", "4", str(script), "--vs", "torch-rpc", *QUICK]
    done = run(*command, folder=tmp_path)
    assert done.returncode != 0
    assert "torch-rpc trains something else: parameter 3 of fcn-5 is " in done.stderr
    assert "in the first way" in done.stderr
