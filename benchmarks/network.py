"""Backend "rdma" between two hosts beside gloo and raw TCP, and over long lines.

    python benchmarks/network.py [all_reduce rails messages late line world64] [--rounds 40]

Makes the hosts itself, as network namespaces of this machine (root, or whoever may make user
namespaces; tests/hosts), so both share its cores: times say little, ratios are what counts. All
systems take turns in the same processes. A figure is the median of the rounds' ratios, and between
which two ratios that median lies with 95 % confidence. `--backend gloo`: gloo beside itself.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from network_cases import OURS, PARTS, Case, Order, Part

from rdmacoll.bench.frame.interval import interval

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from hosts import StandError
from hosts.stand import Hosts, delay_line

HERE = Path(__file__).resolve().parent
SAID_CHARS = 6000
UNITS = ((1 << 20, "MB"), (1 << 10, "KB"), (1, "B"))


def figures(case: Case, turns_us: dict[str, list[float]]) -> list[float]:
    beside_us = turns_us.get(case.beside, [case.beside_us] * len(turns_us[OURS]))
    pairs = zip(turns_us[OURS], beside_us, strict=True)
    return [ours / other if case.inverse else other / ours for ours, other in pairs]


def human(size: int) -> str:
    unit, name = next(unit for unit in UNITS if size >= unit[0])
    return f"{size // unit} {name}"


def line(case: Case, turns_us: dict[str, list[float]]) -> str:
    times_us = {name: statistics.median(turns) for name, turns in turns_us.items()}
    if case.operation == "one_way":
        mb = case.bytes * case.messages
        times = [f"{name} {mb / time_us:.0f} MB/s" for name, time_us in times_us.items()]
    else:
        times = [f"{name} {time_us:.1f} us" for name, time_us in times_us.items()]
    ratios = figures(case, turns_us)
    median, (low, high) = statistics.median(ratios), interval(ratios)
    verdict = "met" if case.meets(median, case.mark) else "MISSED"
    if case.aim is not None and case.meets(median, case.aim):
        verdict = "aim met"
    marks = f"mark {case.mark:g}" + (f", aim {case.aim:g}" if case.aim is not None else "")
    of = "times" if not case.inverse and case.beside == "gloo" else "of"
    return (
        f"  {case.operation:10} {human(case.bytes):>6}  {median:6.2f} {of} {case.beside} "
        f"[{low:.2f}, {high:.2f}]  {', '.join(times)}  ({marks}: {verdict})"
    )


def run(part: Part, backend: str, rounds: int, raw_tcp: str) -> None:
    print(f"{part.title}", flush=True)
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(2))
        if part.delay_ms:
            made = delay_line(*hosts, delay_ms=part.delay_ms, rate_mbit=part.rate_mbit)
            stack.enter_context(made)
        said = stack.enter_context(tempfile.TemporaryFile("w+"))
        ranks = []
        for host in hosts:
            order = Order(
                list(part.cases),
                backend,
                min(rounds, part.most_rounds),
                part.ranks_per_host,
                part.idle,
                len(hosts),
                host.number,
                raw_tcp,
            )
            command = [sys.executable, str(HERE / "network_rank.py")]
            command += [json.dumps(order.to_dict())]
            ranks.append(host.start(*command, stdout=subprocess.PIPE, stderr=said))
        assert ranks[0].stdout is not None
        for text in ranks[0].stdout:
            result = json.loads(text)
            print(line(part.cases[result["case"]], result["turns_us"]), flush=True)
        if status := ranks[0].wait():
            said.seek(0)
            sys.exit(f"rank 0 ended with {status}; the ranks said first:\n{said.read(SAID_CHARS)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all, if none is given")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--backend", default="rdma", help="what is measured beside gloo")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: give 1 or more")
    with tempfile.TemporaryDirectory(prefix="network-") as folder:
        raw_tcp = f"{folder}/raw_tcp"
        source = str(HERE / "raw_tcp.cc")
        subprocess.run(["g++", "-O2", "-std=c++20", "-o", raw_tcp, source], check=True)
        try:
            for name in options.parts or PARTS:
                run(PARTS[name], options.backend, options.rounds, raw_tcp)
        except StandError as error:
            sys.exit(f"no hosts to measure on: {error}")


if __name__ == "__main__":
    main()
