"""PyG: each rank trains a graph net under DDP on subgraphs around nodes of its own."""

import torch
import torch.distributed as dist
from recipe import ASKED, STEPS, report
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.nn import GraphSAGE
from torch_geometric.utils import k_hop_subgraph

NODES, EDGES, FEATURES = 200, 800, 8

dist.init_process_group(ASKED)
generator = torch.Generator().manual_seed(0)  # the same graph on all ranks
features = torch.randn(NODES, FEATURES, generator=generator)
edges = torch.randint(0, NODES, (2, EDGES), generator=generator)
targets = features.sum(1, keepdim=True)
torch.manual_seed(1)
model = DistributedDataParallel(GraphSAGE(FEATURES, 16, num_layers=2, out_channels=1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
mine = torch.arange(dist.get_rank(), NODES, dist.get_world_size())
losses = []
for seeds in mine[: STEPS * 8].split(8):
    nodes, among, at, _ = k_hop_subgraph(seeds, 2, edges, relabel_nodes=True)
    loss = mse_loss(model(features[nodes], among)[at], targets[seeds])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report(losses)
