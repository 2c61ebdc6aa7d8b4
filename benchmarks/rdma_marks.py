"""The engine over verbs beside perftest, on one device, interleaved in short rounds.

    python benchmarks/rdma_marks.py --device rxe0 --gid-index 1 [--rounds 5] [--build build/cpp]

Large messages: busbw of all_gather and all_reduce, in place in the heap and from ordinary buffers,
against half of `ib_write_bw -b` (both directions at once, as the collectives go). Small ones: an
8-byte all_reduce against `ib_write_lat`, half a round trip. Prints every round, then the median of
the rounds' ratios.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess

from perftest import LIMIT_S, MIB, last_row, perftest

OPERATIONS = ("all_gather", "all_reduce")
MEMORIES = ("heap", "ordinary")


class Ours:
    def __init__(self, build: str, device: str, gid_index: int) -> None:
        self.program = os.path.join(build, "one_collective")
        self.environment = os.environ | {
            "RDMACOLL_TRANSPORT": "verbs",
            "RDMACOLL_HCA": "=" + device,
            "RDMACOLL_GID_INDEX": str(gid_index),
        }

    def __call__(self, operation: str, size: int, rounds: int, *memory: str) -> dict[str, float]:
        ran = subprocess.run(
            [self.program, operation, "2", str(size), str(rounds), *memory],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        if ran.returncode != 0:
            raise SystemExit(f"{operation} of {size} bytes failed:\n{ran.stdout}{ran.stderr}")
        fields = ran.stdout.split()[1:]
        return {name: float(value) for name, value in zip(fields[::2], fields[1::2], strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", required=True)
    parser.add_argument("--gid-index", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=16, help="size of the large tensors")
    parser.add_argument("--build", default="build/cpp")
    arguments = parser.parse_args()
    device = ["-d", arguments.device, "-x", str(arguments.gid_index)]
    ours = Ours(arguments.build, arguments.device, arguments.gid_index)
    size = arguments.mib * MIB
    large = [(operation, memory) for operation in OPERATIONS for memory in MEMORIES]
    ratios: dict[str, list[float]] = {" ".join(what): [] for what in large}
    ratios["8 B"] = []
    print(f"{arguments.device}: MiB/s one way, us; {arguments.mib} MiB and 8 B, 2 ranks")
    for number in range(arguments.rounds):
        bandwidth = ["-b", "-s", str(MIB), "-n", "100"]
        limit = last_row(perftest("ib_write_bw", bandwidth, device, 18600 + number))[3] / 2
        latency = last_row(
            perftest("ib_write_lat", ["-s", "8", "-n", "2000"], device, 18700 + number)
        )[4]
        line = f"round {number}: ib_write_bw -b / 2 {limit:.1f}"
        for operation, memory in large:
            busbw = ours(operation, size, 5, memory)["busbw_MB/s"] * 1e6 / MIB
            ratios[f"{operation} {memory}"].append(busbw / limit)
            line += f", {operation} {memory} {busbw:.1f}"
        small = ours("all_reduce", 8, 2000)
        ratios["8 B"].append(small["us"] / latency)
        print(
            f"{line}; ib_write_lat {latency:.1f}, 8 B all_reduce {small['us']:.1f}; in its steady "
            f"state {small['registrations']:.0f} registrations, "
            f"{small['control']:.0f} control messages",
            flush=True,
        )
    for what, values in ratios.items():
        of = "ib_write_lat" if what == "8 B" else "half of ib_write_bw -b"
        print(f"{what}: {statistics.median(values):.2f} of {of}")


if __name__ == "__main__":
    main()
