"""How long a job takes until all ranks are through their first all_reduce, and what a rank holds.

    benchmarks/startup.py -np 64 [rdmarun's other options, as --preload torch]

It runs rdmarun, with itself as the script. All figures but the last are of the slowest rank.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

BEGAN = "STARTUP_BEGAN_S"


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
    dist.init_process_group("rdma")
    times_s.append(time.time())
    dist.all_reduce(torch.ones(1))
    times_s.append(time.time())
    own = torch.tensor([*times_s, private_mb()], dtype=torch.float64)
    gathered = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, own)
    everyones = torch.stack(gathered)
    if dist.get_rank() == 0:
        imported_s, init_s, reduced_s = (everyones.amax(0)[:3] - began_s).tolist()
        print(
            f"{dist.get_world_size()} ranks, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}"
        )
        print(f"the last rank has imported torch after    {imported_s:6.2f} s")
        print(f"the last rank has made its group after    {init_s:6.2f} s")
        print(f"all are through the first all_reduce after{reduced_s:6.2f} s")
        print(f"so our own part is                        {reduced_s - imported_s:6.2f} s")
        print(f"private memory of a rank, median          {everyones[:, 3].median():6.1f} MB")
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
