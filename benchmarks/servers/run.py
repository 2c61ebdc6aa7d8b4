"""The parameter server beside memcpy, torch.rpc, gRPC and DDP over gloo, in one host.

    python benchmarks/servers/run.py [PART ...] [--rounds 40]

Each part is a job of workers with servers, in which all that is compared takes turns. A figure is
the median of the rounds' ratios, and between which two ratios that median lies with 95 %
confidence. The case "memcpy" is memcpy beside itself, the control. See docs/BENCHMARK.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import torch

from rdmacoll.bench.frame.interval import ratio_of

HERE = Path(__file__).resolve().parent
JOB_LIMIT_S = 600
FAILOVERS = 7


class Part(NamedTuple):
    about: str
    servers: int = 1
    workers: int = 1
    options: tuple[str, ...] = ()
    mark: float | None = None  # that each ratio is to reach; of loads: that none is to exceed
    has_loads: bool = False  # of the servers, instead of times
    needs_gpu: bool = False
    has_mount: bool = False


PARTS = {
    "dense": Part("64 MB of one table, beside memcpy of as much"),
    "rows": Part("pulls of rows of 256 B, beside RPCs"),
    "replicas": Part("pushes of 64 MB to two servers, beside memcpy of as much", servers=2),
    "alone": Part("the same without backups", servers=2, options=("--server-replicas", "1")),
    "rest": Part("pulls of 32 rows, one after the other, after 5 ms of rest"),
    "failover": Part("a server is killed while a worker pushes and pulls", servers=3),
    "sync": Part("two workers in step, with 64 MB of parameters, beside DDP", workers=2, mark=1.5),
    "recommender": Part("rows of 256 B that are trained, beside RPCs", mark=2),
    "gpu": Part("64 MB on a GPU, beside its copy and beside the same of the host", needs_gpu=True),
    "files": Part("64 MB of a file, beside memcpy of as much", servers=2, has_mount=True),
    "zipf": Part("two servers' loads, of the mean", 2, 2, mark=1.25, has_loads=True),
    "zipf-4": Part("four servers' loads, of the mean", 4, 2, mark=1.25, has_loads=True),
}


def measure(part: str, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Of each case the seconds of each way, round by round, the first is ours; or loads."""
    its = PARTS[part]
    with tempfile.TemporaryDirectory(prefix="rdmacoll-bench-") as folder:
        json_at = Path(folder, "seconds.json")
        job = [str(Path(sys.executable).with_name("rdmarun")), "-np", str(its.workers)]
        job += ["--servers", str(its.servers), *its.options]
        if its.has_mount:
            job += ["--mount", str(Path(folder, "mount"))]
        worker = [str(HERE / "worker.py"), part, str(rounds), str(json_at)]
        subprocess.run([*job, *worker], check=True, timeout=JOB_LIMIT_S)
        return json.loads(json_at.read_text())


def show_loads(part: str, cases: dict[str, dict[str, list[float]]]) -> None:
    for case, found in cases.items():
        said = ", ".join(f"{name} {value:.3g}" for name, (value,) in found.items())
        (seen,) = found["seen then"]
        print(f"  {case:22} {said}{verdict(part, seen <= (PARTS[part].mark or 0))}")


def verdict(part: str, is_met: bool) -> str:
    mark = PARTS[part].mark
    return "" if mark is None else f" (mark {mark:g}: {'met' if is_met else 'MISSED'})"


def show(part: str, cases: dict[str, dict[str, list[float]]]) -> None:
    for case, seconds in cases.items():
        (ours, times), *others = seconds.items()
        print(f"  {case:22} {ours} {statistics.median(times) * 1e6:10.1f} us", end="")
        for name, theirs in others:
            ratio = ratio_of(theirs, times)
            median_us = statistics.median(theirs) * 1e6
            print(f"   {name} {median_us:.1f} us: {ratio.median:.2f} {ratio.between}", end="")
            print(verdict(part, ratio.median >= (PARTS[part].mark or 0)), end="")
        print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = f"of {', '.join(PARTS)}; none: all"
    parser.add_argument("parts", nargs="*", metavar="PART", help=which)
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; name {', '.join(PARTS)}")
    for part in arguments.parts or PARTS:
        if PARTS[part].needs_gpu and not torch.cuda.is_available():
            print(f"{part}: SKIPPED, as torch has no GPU here")
            continue
        cases = measure(part, arguments.rounds)
        for _ in range(FAILOVERS - 1 if part == "failover" else 0):
            for case, seconds in measure(part, arguments.rounds).items():
                for way, times in seconds.items():
                    cases[case][way] += times
        print(f"{part}: {PARTS[part].about}")
        (show_loads if PARTS[part].has_loads else show)(part, cases)


if __name__ == "__main__":
    main()
