"""ignite: on gloo auto_model wraps the model; it does not know rdma, so there DDP is said."""

from typing import Any

import ignite.distributed as idist
import torch
import torch.distributed as dist
from ignite.engine import Engine, Events
from ignite.metrics import Average
from recipe import ASKED, batches, net, report
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group(ASKED)
model = idist.auto_model(net()) if ASKED == "gloo" else DistributedDataParallel(net())
optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.05))
losses: list[float] = []


def step(_: Engine, batch: Any) -> float:
    inputs, targets = batch
    loss = mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    return loss.item()


engine = Engine(step)
Average().attach(engine, "loss")
engine.add_event_handler(Events.COMPLETED, lambda: losses.append(engine.state.metrics["loss"]))
engine.run(batches(idist.get_rank()), max_epochs=1)
report([float(loss) for loss in losses])
idist.finalize()
