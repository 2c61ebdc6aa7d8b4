"""Runs every fuzz target so many times, several at once, and prints a table of what came of it.

    python tests/fuzz/run.py --runs 1000000 --jobs 2 [--only tuning]

What the fuzzer learns stays in build/fuzz/corpus for the next run; an input that fails lies in
build/fuzz/findings, and `build/fuzz/tests/fuzz/NAME_fuzz FILE` replays it.
"""

import argparse
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "fuzz"

MAX_INPUT_BYTES = 16384
# The most that one allocation may take, and all: parsers have no use for more than a few inputs.
MALLOC_LIMIT_MB = 2
RSS_LIMIT_MB = 1024
TIMEOUT_S = 5  # of one input


@dataclass(frozen=True)
class Outcome:
    name: str
    executions: int
    seconds: float
    edges: int
    output: str
    failed: bool


def fuzz(target: Path, runs: int) -> Outcome:
    name = target.name.removesuffix("_fuzz")
    folders = {kind: BUILD / kind / name for kind in ("corpus", "seeds", "findings")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([target, f"--write_seeds={folders['seeds']}"], check=True, capture_output=True)
    begin = time.monotonic()
    done = subprocess.run(
        [
            target,
            f"-runs={runs}",
            f"-max_len={MAX_INPUT_BYTES}",
            f"-malloc_limit_mb={MALLOC_LIMIT_MB}",
            f"-rss_limit_mb={RSS_LIMIT_MB}",
            f"-timeout={TIMEOUT_S}",
            f"-artifact_prefix={folders['findings']}/",
            "-print_final_stats=1",
            folders["corpus"],
            folders["seeds"],
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return Outcome(
        name,
        int((re.findall(r"number_of_executed_units: (\d+)", done.stdout) or ["0"])[-1]),
        time.monotonic() - begin,
        int((re.findall(r"cov: (\d+)", done.stdout) or ["0"])[-1]),
        done.stdout,
        done.returncode != 0,
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, required=True, help="of each target")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="one target")
    given = parser.parse_args()
    targets = sorted(BUILD.glob(f"tests/fuzz/{given.only or '*'}_fuzz"))
    if not targets:
        print(f"no target {given.only} in {BUILD}: run make fuzz", file=sys.stderr)
        return 1
    with ThreadPoolExecutor(given.jobs) as pool:
        outcomes = list(pool.map(lambda target: fuzz(target, given.runs), targets))
    for outcome in outcomes:
        if outcome.failed:
            print(f"--- {outcome.name}\n{outcome.output}")
    print(f"{'parser':<16}{'executions':>12}{'seconds':>9}{'edges':>7}{'findings':>10}")
    for o in outcomes:
        print(f"{o.name:<16}{o.executions:>12}{o.seconds:>9.0f}{o.edges:>7}{int(o.failed):>10}")
    short = [o.name for o in outcomes if not o.failed and o.executions < given.runs]
    if short:
        print(f"too few executions: {', '.join(short)}", file=sys.stderr)
    return int(bool(short) or any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
