"""Ray Train: TorchConfig(backend=...). Ray starts the workers, which share a secret in a file.

python ray_train.py rdma
"""

import os
import secrets
import sys
import tempfile
from pathlib import Path

import ray
import torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model

HERE = str(Path(__file__).parent)


def train(config: dict[str, str]) -> None:
    """On each worker. What it says of itself is Ray's, so it goes to a file."""
    sys.path.insert(0, HERE)
    import torch.distributed as dist
    from recipe import batches, net, report
    from torch.nn.functional import mse_loss

    model = prepare_model(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for inputs, targets in batches(dist.get_rank()):
        loss = mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with open(f"{config['folder']}/{dist.get_rank()}", "w") as said:
        sys.stdout = said
        report(losses)
        sys.stdout = sys.__stdout__


asked = sys.argv[1]
with tempfile.TemporaryDirectory() as folder:
    secret = Path(folder) / "secret"
    secret.touch(0o600)
    secret.write_bytes(secrets.token_bytes(32))
    env = {"RDMACOLL_SECRET_FILE": str(secret)}
    env |= {name: value for name, value in os.environ.items() if name == "RDMACOLL_AS_GLOO"}
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": env})
    TorchTrainer(
        train,
        train_loop_config={"folder": folder},
        torch_config=TorchConfig(backend=asked),
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(storage_path=f"{folder}/ray"),
    ).fit()
    ray.shutdown()
    for rank in range(2):
        print((Path(folder) / str(rank)).read_text(), end="")
