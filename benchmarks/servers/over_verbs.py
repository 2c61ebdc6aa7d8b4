"""A server of the parameter server over verbs, beside perftest and beside the same over TCP.

    python benchmarks/servers/over_verbs.py [--device rxe0] [--rounds 5]

A dense table of 16 MiB is pulled, and pushed to until that is acknowledged, against `ib_read_bw`
and `ib_write_bw` of messages as large, as many at a time as the table has shards; and a second job
does it over TCP. All take turns: every round's MiB/s, then the median of the rounds' ratios, the
smallest and the largest. Servers and workers are processes of this machine that speak verbs, or
TCP, to each other. No mark is asserted.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measured_job import MeasuredJob
from perftest import MIB, last_row, perftest
from rdma_remote_marks import DEVICES, routed_gid

HOST = "127.0.0.1"
TABLE_MIB = 16
DEPTH = 16  # shards
MESSAGES = "64"  # of perftest, in a round
WARM_UP = 2  # places are learned
BESIDE = {"push": "ib_write_bw", "pull": "ib_read_bw"}


def start(*command: str, env: dict[str, str], **options: Any) -> subprocess.Popen[str]:
    options = {"stdin": subprocess.DEVNULL, "text": True} | options
    return subprocess.Popen(command, env={**os.environ, **env}, **options)


def job(stack: ExitStack, transport: str) -> MeasuredJob:
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    env = {"RDMACOLL_TRANSPORT": transport, "OMP_NUM_THREADS": "1"}
    return MeasuredJob(stack, start, start, (HOST, port), env)


def rates(of: MeasuredJob) -> dict[str, float]:
    """In MiB/s."""
    found = of.measure()
    return {what: TABLE_MIB / found[f"{what}, servers"] for what in BESIDE}


def measure(device: list[str], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Of a push and a pull the MiB/s of each way, round by round."""
    shape = ["-s", str(MIB), "-n", MESSAGES, "-t", str(DEPTH), "--cq-mod", "1"]
    all_rates: dict[str, dict[str, list[float]]] = {what: {} for what in BESIDE}
    with ExitStack() as stack:
        verbs, tcp = job(stack, "verbs"), job(stack, "tcp")
        for _ in range(WARM_UP):
            verbs.measure(), tcp.measure()
        for number in range(rounds):
            ours = {"verbs": rates(verbs), "TCP": rates(tcp)}
            line = f"round {number}:"
            for what, beside in BESIDE.items():
                theirs = last_row(perftest(beside, shape, device, 18900 + number))[3]
                said = {way: rate[what] for way, rate in ours.items()} | {beside: theirs}
                for way, rate in said.items():
                    all_rates[what].setdefault(way, []).append(rate)
                line += f" {what} " + ", ".join(f"{way} {rate:.1f}" for way, rate in said.items())
                line += ";"
            print(line, flush=True)
    return all_rates


def show(all_rates: dict[str, dict[str, list[float]]]) -> None:
    for what, of_ways in all_rates.items():
        for way in (BESIDE[what], "TCP"):
            ratios = [a / b for a, b in zip(of_ways["verbs"], of_ways[way], strict=True)]
            between = f"({min(ratios):.2f} to {max(ratios):.2f})"
            print(f"{what} over verbs: {statistics.median(ratios):.2f} of {way} {between}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", help="the first one, if none is given")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    name = options.device or min(path.name for path in DEVICES.iterdir())
    os.environ["RDMACOLL_HCA"] = "=" + name
    print(f"{name}: MiB/s, a table of {TABLE_MIB} MiB")
    show(measure(["-d", name, "-x", str(routed_gid(name))], options.rounds))


if __name__ == "__main__":
    main()
