"""The parameter server beside memcpy, torch.rpc and gRPC, in one host.

    python benchmarks/servers/run.py [PART ...] [--rounds 40]

Each part is a job of one worker with servers, in which all that is compared takes turns. A figure
is the median of the rounds' ratios, and between which two ratios that median lies with 95 %
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

from rdmacoll.bench.frame.interval import ratio_of

HERE = Path(__file__).resolve().parent
JOB_LIMIT_S = 600
FAILOVERS = 7
# Of each part: rdmarun's options, and what it measures.
PARTS = {
    "dense": (["--servers", "1"], "64 MB of one table, beside memcpy of as much"),
    "rows": (["--servers", "1"], "pulls of rows of 256 B, beside RPCs"),
    "replicas": (["--servers", "2"], "pushes of 64 MB to two servers, beside memcpy of as much"),
    "alone": (["--servers", "2", "--server-replicas", "1"], "the same without backups"),
    "rest": (["--servers", "1"], "pulls of 32 rows, one after the other, after 5 ms of rest"),
    "failover": (["--servers", "3"], "a server is killed while a worker pushes and pulls"),
}


def measure(part: str, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Of each case the seconds of each way, round by round; the first is ours."""
    options, _ = PARTS[part]
    with tempfile.TemporaryDirectory(prefix="rdmacoll-bench-") as folder:
        json_at = Path(folder, "seconds.json")
        job = [str(Path(sys.executable).with_name("rdmarun")), "-np", "1", *options]
        worker = [str(HERE / "worker.py"), part, str(rounds), str(json_at)]
        subprocess.run([*job, *worker], check=True, timeout=JOB_LIMIT_S)
        return json.loads(json_at.read_text())


def show(part: str, cases: dict[str, dict[str, list[float]]]) -> None:
    print(f"{part}: {PARTS[part][1]}")
    for case, seconds in cases.items():
        (ours, times), *others = seconds.items()
        print(f"  {case:22} {ours} {statistics.median(times) * 1e6:10.1f} us", end="")
        for name, theirs in others:
            ratio = ratio_of(theirs, times)
            median_us = statistics.median(theirs) * 1e6
            print(f"   {name} {median_us:.1f} us: {ratio.median:.2f} {ratio.between}", end="")
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
        cases = measure(part, arguments.rounds)
        for _ in range(FAILOVERS - 1 if part == "failover" else 0):
            for case, seconds in measure(part, arguments.rounds).items():
                for way, times in seconds.items():
                    cases[case][way] += times
        show(part, cases)


if __name__ == "__main__":
    main()
