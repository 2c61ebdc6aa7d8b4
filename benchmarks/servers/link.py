"""A push and a pull of 16 MB over a link of 1 Gbit/s, beside gRPC over it and in shared memory.

    python benchmarks/servers/link.py [--rounds 20] [--mbit 1000]

Makes two hosts as namespaces of this machine (root, or who may make user namespaces; tests/hosts),
and slows their cables down with tc(8)'s tbf. The worker is on one of them, its server and that of
gRPC on the other one; a second job has its server where its worker is. All take turns. A figure is
the median of the rounds' ratios, and between which two it lies with 95 % confidence. See
docs/BENCHMARK.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from measured_job import END_S, WORKER, MeasuredJob

from rdmacoll.bench.frame.interval import ratio_of

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from hosts import StandError
from hosts.stand import INTERFACE, Host, Hosts

PORTS = {"link": 29500, "here": 29501}  # of the two jobs' Stores; the network is the hosts' own
BURST = "256kb"
QUEUE = "50ms"  # longest wait in it
WARM_UP = 2
Times = dict[str, list[float]]


def slow_down(host: Host, mbit: int) -> None:
    rate = ["rate", f"{mbit}mbit", "burst", BURST, "latency", QUEUE]
    done = host.run("tc", "qdisc", "add", "dev", INTERFACE, "root", "tbf", *rate)
    if done.returncode != 0:
        raise StandError(f"tc {rate}: {done.stdout.strip()}")


def measure(rounds: int, mbit: int) -> Times:
    times: Times = {}
    with Hosts(2) as (a, b), ExitStack() as stack:
        for host in (a, b):
            slow_down(host, mbit)
        answers = b.start(
            sys.executable, WORKER, "answer", b.address, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        assert answers.stdin is not None and answers.stdout is not None
        stack.callback(answers.wait, END_S)
        stack.callback(answers.stdin.close)
        grpc_at = answers.stdout.readline().strip()
        ports = {name: (a.address, port) for name, port in PORTS.items()}
        over_link = MeasuredJob(stack, a.start, b.start, ports["link"], grpc_at=grpc_at)
        in_host = MeasuredJob(stack, a.start, a.start, ports["here"])
        for number in range(WARM_UP + rounds):
            found = over_link.measure()
            found |= {f"{name}, shared memory": it for name, it in in_host.measure().items()}
            if number >= WARM_UP:
                for name, seconds in found.items():
                    times.setdefault(name, []).append(seconds)
    return times


def show(times: Times, mbit: int) -> None:
    for what in ("push", "pull"):
        ours = times[f"{what}, servers"]
        print(
            f"{what} of 16 MB over {mbit} Mbit/s: servers {statistics.median(ours):.4f} s", end=""
        )
        for name in (f"{what}, gRPC", f"{what}, servers, shared memory"):
            theirs = times[name]
            ratio = ratio_of(theirs, ours)
            label = name.removeprefix(f"{what}, ")
            print(f"   {label} {statistics.median(theirs):.4f} s:", end="")
            print(f" {ratio.median:.3g} {ratio.between}", end="")
        print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--mbit", type=int, default=1000, help="of the cables")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        show(measure(arguments.rounds, arguments.mbit), arguments.mbit)
    except StandError as error:
        sys.exit(f"no hosts to measure on: {error}")


if __name__ == "__main__":
    main()
