"""The smallest script: every rank brings its number, all learn the sum.

rdmarun -np 2 examples/02_collectives.py
"""

import torch
import torch.distributed as dist

dist.init_process_group(backend="rdma")
rank, world = dist.get_rank(), dist.get_world_size()

tensor = torch.full((4,), float(rank + 1))
dist.all_reduce(tensor)
print(f"rank {rank} of {world}: the sum is {tensor.tolist()}")

dist.destroy_process_group()
