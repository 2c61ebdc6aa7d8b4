"""Ranks that train apart are warned of, and others are not.

Floor: tests.
"""

import pytest
from runs import ranks_of

WARNING = "4 optimizer steps, and nothing has gone between the ranks: does each train alone?"
# STEP stands behind each step of an optimizer of this rank's own.
TRAINS = """
import torch, torch.distributed as dist
START
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total, first = torch.zeros(1), dist.is_initialized() and dist.get_rank() == 0
for step in range(6):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    STEP
other_group = None  # a thread of gloo's may else free a tensor when Python has ended
if dist.is_initialized():
    dist.destroy_process_group()
"""
IGNITE = "import ignite.distributed as idist; idist.auto_model(torch.nn.Linear(2, 2))"
ACCELERATE = "from accelerate import Accelerator; assert Accelerator().num_processes == 1"
INIT = 'dist.init_process_group("{}")'
MESSAGES = "(dist.send if first else dist.recv)(total, int(first))"


def warnings(begin: str, step: str, *options: str) -> int:
    script = TRAINS.replace("START", begin).replace("STEP", step)
    return ranks_of(script, *options).output.count(WARNING)


@pytest.mark.parametrize(
    ("begin", "step"),
    [
        ("", "pass"),
        (INIT.format("rdma"), "pass"),
        (INIT.format("rdma"), "dist.barrier()"),
        (INIT.format("rdma") + "; dist.all_reduce(torch.ones(1))", "pass"),
        (INIT.format("rdma") + "; " + IGNITE, "pass"),
        (INIT.format("gloo"), "pass"),
        (ACCELERATE, "pass"),
    ],
    ids=["no group", "rdma", "barriers", "before", "ignite", "gloo", "accelerate"],
)
def test_it_is_said_once(begin: str, step: str) -> None:
    assert warnings(begin, step) == 1


@pytest.mark.parametrize("backend", ["rdma", "gloo"])
@pytest.mark.parametrize("step", ["dist.all_reduce(total)", MESSAGES], ids=["sums", "messages"])
def test_nothing_is_said_of_ranks_that_meet(backend: str, step: str) -> None:
    assert warnings(INIT.format(backend), step) == 0


def test_nothing_is_said_where_it_cannot_be_known() -> None:
    beside = '; other_group = dist.new_group(backend="gloo")'
    in_it = "dist.all_reduce(total, group=other_group)"
    assert warnings(INIT.format("rdma") + beside, in_it) == 0
    assert warnings("", "pass", "-x", "RDMACOLL_FLIGHT_RECORDS=0") == 0


def test_training_goes_on_where_torch_is_another_than_is_known() -> None:
    """As where torch keeps its groups elsewhere."""
    lacks = "; import rdmacoll._apart as apart; apart._backends = None"
    script = TRAINS.replace("START", INIT.format("rdma") + lacks).replace("STEP", "pass")
    output = ranks_of(script + 'print("trained")\n').output
    assert output.count("cannot tell whether ranks train apart") == 2
    assert output.count("trained") == 2


def test_nothing_is_said_of_one_rank() -> None:
    script = TRAINS.replace("START", "").replace("STEP", "pass")
    assert WARNING not in ranks_of(script, "-np", "1").output
