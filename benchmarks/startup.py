"""How long a job takes until all ranks are through their first all_reduce, and what a rank holds.

    benchmarks/startup.py -np 64 [rdmarun's other options, as --preload torch]

It runs rdmarun, with itself as the script. Times count from the start of rdmarun.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

BEGAN = "STARTUP_BEGAN_S"
STEPS = "has imported torch", "has reached the Store", "has made its group", "has all_reduced once"


def main() -> int:
    """Starts the job with these options and passes its output on."""
    command = [sys.executable, "-m", "rdmacoll.launcher", *sys.argv[1:], "--no-tag-output"]
    env = {**os.environ, BEGAN: str(time.time())}
    return subprocess.run([*command, __file__], env=env).returncode


def rank() -> None:
    began_s = float(os.environ[BEGAN])
    import torch
    import torch.distributed as dist

    times_s = [time.time()]
    store, number, world = next(dist.rendezvous("env://"))
    times_s.append(time.time())
    dist.init_process_group("rdma", store=store, rank=number, world_size=world)
    times_s.append(time.time())
    dist.all_reduce(torch.ones(1))
    times_s.append(time.time())
    own = torch.tensor([*times_s, private_mb()], dtype=torch.float64)
    gathered = [torch.empty_like(own) for _ in range(world)]
    dist.all_gather(gathered, own)
    everyones = torch.stack(gathered)
    if number == 0:
        after_s = (everyones.amax(0)[:4] - began_s).tolist()
        print(
            f"{world} ranks, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}; the last rank"
        )
        for what, at_s in zip(STEPS, after_s, strict=True):
            print(f"  {what:34s} {at_s:6.2f} s")
        print(f"{'our part, from the first of these':36s} {after_s[-1] - after_s[0]:6.2f} s")
        print(f"{'private memory of a rank, median':36s} {everyones[:, 4].median():6.1f} MB")
    dist.barrier()
    dist.destroy_process_group()


def private_mb() -> float:
    sizes = re.findall(
        r"^Private_\w+: +(\d+) kB$", Path("/proc/self/smaps_rollup").read_text(), re.M
    )
    return sum(map(int, sizes)) / 1024


if __name__ == "__main__":
    if BEGAN in os.environ:
        rank()
    else:
        sys.exit(main())
