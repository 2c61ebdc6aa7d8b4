"""docs/FRAMEWORKS.md: what each library computes on rdma is what it computes on gloo.

Floor: tests.
"""

from importlib.util import find_spec

import pytest
from runs import TORCHRUN, Run, control, launcher, recipe, start

# Which library a recipe is for; tests/frameworks/requirements.txt has them.
LIBRARIES = {
    "ddp": "torch",
    "fsdp2": "torch",
    "accelerating": "accelerate",
    "ignite_engine": "ignite",
    "lightning_ddp": "lightning",
    "lightning_fsdp2": "lightning",
    "metrics": "torchmetrics",
    "torch_older": "torch",
    "torch_parallel": "torch",
    "torch_pipelining": "torch",
    "transformers_trainer": "transformers",
}
# Those that take long to install or to run; tests/frameworks/nightly.txt has them.
NIGHTLY_LIBRARIES = {
    "deepspeed_zero": "deepspeed",
    "fairscale_oss": "fairscale",
    "monai_unet": "monai",
    "pyg_subgraphs": "torch_geometric",
    "ray_train": "ray",
    "timm_train": "timm",
}
ALL_LIBRARIES = LIBRARIES | NIGHTLY_LIBRARIES
AS_GLOO = "RDMACOLL_AS_GLOO=1: groups that ask for gloo get rdma"
each = pytest.mark.parametrize(
    "name",
    [*LIBRARIES, *(pytest.param(one, marks=pytest.mark.nightly) for one in NIGHTLY_LIBRARIES)],
)
pytestmark = pytest.mark.timeout(600)


def require(name: str) -> None:
    """Where it is missing, the test fails."""
    assert find_spec(ALL_LIBRARIES[name]), f"{ALL_LIBRARIES[name]} is not installed"


def equals_control(name: str, run: Run) -> None:
    assert [rank.values for rank in run.ranks] == [rank.values for rank in control(name)]
    assert [rank.runs_on for rank in run.ranks] == ["RdmaBackend"] * 2
    assert "does each train alone?" not in run.output


@each
def test_as_it_is_with_as_gloo(name: str) -> None:
    require(name)
    run = start([*launcher(name), recipe(name), "gloo"], RDMACOLL_AS_GLOO="1")
    equals_control(name, run)
    assert [rank.named for rank in run.ranks] == ["gloo"] * 2
    said = run.output.count(AS_GLOO)
    assert said == 1 or (said and name == "ray_train")  # Ray shows a worker's lines twice


@each
def test_by_its_name(name: str) -> None:
    require(name)
    run = start([*launcher(name), recipe(name), "rdma"])
    equals_control(name, run)
    assert AS_GLOO not in run.output
    assert "no secret" not in run.output


def test_as_gloo_by_rdmaruns_option() -> None:
    run = start([*launcher("ddp"), "--as-gloo", recipe("ddp"), "gloo"])
    equals_control("ddp", run)
    assert run.output.count(AS_GLOO) == 1


def test_as_gloo_under_torchrun() -> None:
    run = start([*TORCHRUN, recipe("ddp"), "gloo"], RDMACOLL_AS_GLOO="1")
    equals_control("ddp", run)
    assert run.output.count(AS_GLOO) == 1
