"""Remote memory over verbs beside perftest and bare verbs, on one device, in turns.

    python benchmarks/rdma_remote_marks.py [--device rxe0] [--rounds 5] [--build build/cpp]

Writes and reads of 16 MiB against `ib_write_bw` and `ib_read_bw` of the same size and depth: every
round's MiB/s, then the median of the rounds' ratios, the smallest and the largest. 8 bytes that are
written and notified of, until the answer has come, against a ping-pong of bare WRITE_WITH_IMM:
transfer_verbs (benchmarks/verbs). Ratios alone are said, and no mark is asserted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
from pathlib import Path

from perftest import LIMIT_S, MIB, last_row, perftest

DEVICES = Path("/sys/class/infiniband")
SMALL_BYTES = 8
SMALL_ROUNDS = 15


def routed_gid(device: str) -> int:
    """The first RoCE address that holds one of IPv4; 0 on InfiniBand, where none is needed."""
    gids = sorted(DEVICES.glob(f"{device}/ports/1/gids/*"), key=lambda file: int(file.name))
    for file in gids:
        try:
            if file.read_text().startswith("0000:") and ":ffff:" in file.read_text():
                return int(file.name)
        except OSError:  # an entry without an address
            continue
    return 0


def ours(build: str, operation: str, size: int, count: int, depth: int) -> float:
    command = [f"{build}/one_remote", operation, str(size), str(count), str(depth)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{ran.stdout}{ran.stderr}")
    return float(ran.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", help="the first one, if none is given")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=16, help="size of the large transfers")
    parser.add_argument("--depth", type=int, default=4, help="how many are under way at a time")
    parser.add_argument("--count", type=int, default=16, help="how many a round has")
    parser.add_argument("--build", default="build/cpp")
    options = parser.parse_args()
    name = options.device or min(path.name for path in DEVICES.iterdir())
    device = ["-d", name, "-x", str(routed_gid(name))]
    os.environ |= {"RDMACOLL_TRANSPORT": "verbs", "RDMACOLL_HCA": "=" + name}
    size = options.mib * MIB
    shape = ["-s", str(size), "-n", str(options.count), "-t", str(options.depth), "--cq-mod", "1"]
    print(f"{name}: MiB/s, {options.mib} MiB, {options.depth} at a time, {options.count} a round")
    ratios: dict[str, list[float]] = {"write": [], "read": []}
    for number in range(options.rounds):
        line = f"round {number}:"
        for operation, values in ratios.items():
            port = 18800 + number
            theirs = last_row(perftest(f"ib_{operation}_bw", shape, device, port))[3]
            mine = ours(options.build, operation, size, options.count, options.depth)
            values.append(mine / theirs)
            line += f" ib_{operation}_bw {theirs:.1f}, {operation} {mine:.1f};"
        print(line, flush=True)
    for operation, values in ratios.items():
        median, low, high = statistics.median(values), min(values), max(values)
        print(f"{operation}: {median:.2f} of ib_{operation}_bw ({low:.2f} to {high:.2f})")
    print("8 bytes, and the answer; `bare verbs` is the ping-pong of WRITE_WITH_IMM:", flush=True)
    small = [f"{options.build}/transfer_verbs", str(SMALL_ROUNDS), str(SMALL_BYTES)]
    subprocess.run(small, check=True, timeout=LIMIT_S)


if __name__ == "__main__":
    main()
