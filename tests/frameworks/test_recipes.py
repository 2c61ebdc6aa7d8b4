"""docs/FRAMEWORKS.md: what each library computes on rdma is what it computes on gloo.

Floor: tests.
"""

import importlib

import pytest
from runs import RDMARUN, TORCHRUN, Run, control, recipe, start

# Which library a recipe is for; tests/frameworks/requirements.txt has them.
LIBRARIES = {
    "ddp": "torch",
    "fsdp2": "torch",
    "accelerating": "accelerate",
    "ignite_engine": "ignite",
    "lightning_ddp": "lightning",
    "metrics": "torchmetrics",
    "transformers_trainer": "transformers",
}
AS_GLOO = "RDMACOLL_AS_GLOO=1: groups that ask for gloo get rdma"
each = pytest.mark.parametrize("name", LIBRARIES)
pytestmark = pytest.mark.timeout(600)


def equals_control(name: str, run: Run) -> None:
    assert [rank.values for rank in run.ranks] == [rank.values for rank in control(name)]
    assert [rank.runs_on for rank in run.ranks] == ["RdmaBackend"] * 2
    assert "does each train alone?" not in run.output


@each
def test_as_it_is_with_as_gloo(name: str) -> None:
    importlib.import_module(LIBRARIES[name])
    run = start([*RDMARUN, "--as-gloo", recipe(name), "gloo"])
    equals_control(name, run)
    assert [rank.named for rank in run.ranks] == ["gloo"] * 2
    assert run.output.count(AS_GLOO) == 1


@each
def test_by_its_name(name: str) -> None:
    importlib.import_module(LIBRARIES[name])
    run = start([*RDMARUN, recipe(name), "rdma"])
    equals_control(name, run)
    assert AS_GLOO not in run.output


def test_as_gloo_under_torchrun() -> None:
    run = start([*TORCHRUN, recipe("ddp"), "gloo"], RDMACOLL_AS_GLOO="1")
    equals_control("ddp", run)
    assert run.output.count(AS_GLOO) == 1
