"""All tests that need an RDMA device, in stages with a limit each, and a table of how they ended.

    python tests/rdma/run.py                all of them
    python tests/rdma/run.py training ...   only these
    python tests/rdma/run.py --part 1/3     all of them, but of the longest ones a third
    python tests/rdma/run.py --groups 1/4   a quarter of the groups of stages

Each group of stages gets a guest of its own (docs/SOFTROCE.md), so that none meets what another has
left behind; those of one group share it, and a process that has imported torch (warm.py). A machine
with an active device runs them directly, without those of two hosts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts import Part, part

REPOSITORY = Path(__file__).resolve().parents[2]
SHARE = REPOSITORY / "build/guest/share"  # that a guest may write to
WARM = "tests/rdma/warm.py"
GRACE_S = 20  # for rdmarun, to end its ranks
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
}
VERBS = {"RDMACOLL_TRANSPORT": "verbs"}
REQUIRE = {"RDMACOLL_REQUIRE": "verbs"}
PASSED = "passed"


@dataclass(frozen=True)
class Stage:
    name: str
    limit_s: int  # of all its tests; a part of them needs less
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    name: str
    layout: str  # an option of python tests/guest
    stages: list[Stage]


@dataclass(frozen=True)
class Outcome:
    stage: str
    said: str
    seconds: float = 0


def groups(build: str, part: Part) -> list[Group]:
    python, rdmarun = sys.executable, str(Path(sys.executable).parent / "rdmarun")
    collectives, refused = "tests/rdma/collectives.py", "tests/rdma/two_hosts_refused.py"
    pytest = [python, "-m", "pytest", "-q", "tests/rdma", "--build-folder", f"{build}"]
    pretended = [WARM, collectives, "--pretend-hosts=2", "--hosts=2", "test_p2p", "test_all_reduce"]
    a_part = [WARM, collectives, f"--part={part}"]
    three_hosts = [*a_part, "--pretend-hosts=3", "--hosts=3", "--no-device"]
    training = [WARM, "examples/01_train_digits.py", "--epochs=2", "--goal=0.8"]
    training += ["--compare=none", "--no-figure"]  # which takes a minute to draw in a guest
    shard = {"GTEST_TOTAL_SHARDS": str(part.count), "GTEST_SHARD_INDEX": str(part.index)}
    two_hosts = [rdmarun, "-np", "4", "-H", "host1:2,host2:2", *a_part, "--hosts=2"]
    counted = [rdmarun, "-np", "4", "-H", "host1:2,host2:2", WARM, "tests/rdma/two_levels.py"]
    remote_faults = [f"{build}/remote_fault_matrix", "verbs", "--part", f"{part}"]
    marks = [python, "benchmarks/rdma_remote_marks.py", "--rounds=2", "--count=8"]
    unit_tests = [f"{build}/unit_engine_test", "--gtest_brief=1"]
    engine = [
        Stage("pingpong", 120, ["tests/rdma/pingpong.sh"]),
        Stage("devices", 60, [python, "-m", "rdmacoll", "info", "--devices"]),
        Stage("opening", 120, [f"{build}/rdma_test", "--gtest_brief=1"]),
        Stage("contract", 300, [f"{build}/rdma_contract_test", "--gtest_brief=1"]),
        Stage("engine", 1800, unit_tests, VERBS | shard),
        Stage("remote marks", 300, [*marks, f"--build={build}"]),
    ]
    torch = [
        Stage("2 ranks", 900, [rdmarun, "-np", "2", *a_part], VERBS),
        Stage("4 ranks", 900, [rdmarun, "-np", "4", *a_part], VERBS),
        Stage("training", 600, [rdmarun, "-np", "2", *training], VERBS),
        Stage("pretended hosts", 600, [rdmarun, "-np", "4", *pretended], REQUIRE),
    ]
    mixed = [
        Stage("refusals", 300, [rdmarun, "-np", "2", WARM, refused]),
        Stage("lost ranks", 300, [python, WARM, "tests/rdma/lost_ranks.py"], VERBS),
        Stage("mixed jobs", 1200, [python, WARM, "tests/rdma/mixed_jobs.py", f"--part={part}"]),
        Stage("mixed hosts", 900, [rdmarun, "-np", "4", *three_hosts]),
    ]
    hosts = [
        Stage("pingpong of hosts", 120, ["tests/rdma/pingpong.sh", "host2"]),
        Stage("two hosts", 900, two_hosts, REQUIRE),
        Stage("two levels", 300, counted, REQUIRE),
    ]
    failures = [
        Stage("failures", 600, pytest),
        Stage("remote faults", 600, remote_faults),
    ]
    # In this order a quarter of them takes five to ten minutes.
    return [
        Group("engine", "--devices=2", engine),
        Group("torch", "--devices=2", torch),
        Group("hosts", "--guests=2", hosts),
        Group("mixed", "--devices=2", mixed),
        Group("failures", "--devices=2", failures),
    ]


def has_active_device() -> bool:
    ports = Path("/sys/class/infiniband").glob("*/ports/*/state")
    return any("ACTIVE" in port.read_text() for port in ports)


def run(stage: Stage) -> Outcome:
    print(f"\n=== {stage.name}: {' '.join(stage.command)}", flush=True)
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            stage.command,
            cwd=REPOSITORY,
            env={**os.environ, **ENVIRONMENT, **stage.environment},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return Outcome(stage.name, f"FAILED: {error}")
    try:
        status = process.wait(stage.limit_s)
        said = f"FAILED, status {status}" if status else PASSED
    except subprocess.TimeoutExpired:
        end(process)
        said = f"FAILED: not done within {stage.limit_s} s"
    return Outcome(stage.name, said, time.monotonic() - began)


@contextlib.contextmanager
def warm(stages: list[Stage], hosts: Sequence[str]) -> Iterator[None]:
    """A server of warm.py here and on the other hosts, where a stage asks for one."""
    server = [sys.executable, WARM]
    there = f"cd {REPOSITORY} && OMP_NUM_THREADS=1 exec {shlex.join(server)}"
    commands = [server, *(["ssh", host, there] for host in hosts)]
    if not any(WARM in stage.command for stage in stages):
        commands = []
    servers = [
        subprocess.Popen(
            command, cwd=REPOSITORY, env={**os.environ, **ENVIRONMENT}, stdin=subprocess.DEVNULL
        )
        for command in commands
    ]
    try:
        yield
    finally:
        for process in servers:
            process.terminate()
            process.wait()


def end(process: subprocess.Popen[bytes]) -> None:
    for sig in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(process.pid, sig)
        try:
            process.wait(GRACE_S)
            return
        except subprocess.TimeoutExpired:
            pass


def run_in_guest(group: Group, stages: list[Stage], build: str, part: Part) -> Iterator[Outcome]:
    """The same program in there, which leaves its outcomes in a file."""
    SHARE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rdma-", dir=SHARE) as folder:
        file = Path(folder, "outcomes")
        limit_s = sum(stage.limit_s + 2 * GRACE_S for stage in stages)
        guest = [sys.executable, "tests/guest", group.layout, f"--timeout={limit_s}"]
        inside = [sys.executable, "tests/rdma/run.py", f"--build={build}", f"--part={part}"]
        inside.append(f"--outcomes={file}")
        names = [stage.name for stage in stages]
        status = subprocess.run([*guest, *inside, *names], cwd=REPOSITORY).returncode
        lines = file.read_text().splitlines() if file.exists() else []
    outcomes = {row["stage"]: Outcome(**row) for row in map(json.loads, lines)}
    for name in names:
        yield outcomes.get(name) or Outcome(name, f"FAILED: its guest ended with status {status}")


def summarize(outcomes: list[Outcome], where: str, part: Part) -> int:
    print(f"\n=== RDMA, in {where}, of the longest part {part}")
    for outcome in outcomes:
        print(f"{outcome.stage:<18} {outcome.seconds:6.0f} s  {outcome.said}")
    failed = sum(outcome.said != PASSED for outcome in outcomes)
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--build", default="build/cpp", help="of cmake (%(default)s)")
    parser.add_argument("--part", type=part, default=Part(), metavar="K/N", help="of the longest")
    parser.add_argument("--groups", type=part, default=Part(), metavar="K/N", help="of the groups")
    parser.add_argument("--outcomes", type=Path, help="run here, and leave the outcomes in a file")
    parser.add_argument("stages", nargs="*", help="names of stages (default: all)")
    options = parser.parse_args()
    known = groups(options.build, options.part)
    names = [stage.name for group in known for stage in group.stages]
    if unknown := set(options.stages) - set(names):
        parser.error(f"no stages {sorted(unknown)}; there are {names}")
    here = options.outcomes is not None or has_active_device()
    outcomes: list[Outcome] = []
    for group in options.groups.of(known):
        stages = [stage for stage in group.stages if stage.name in (options.stages or names)]
        if not stages:
            continue
        if not here:
            outcomes += run_in_guest(group, stages, options.build, options.part)
        elif options.outcomes is None and group.layout == "--guests=2":
            print(f"\n=== {group.name}: not run on a machine with a device: it needs two hosts")
        else:
            with warm(stages, ["host2"] if group.layout == "--guests=2" else []):
                for stage in stages:
                    outcomes.append(run(stage))
                    if options.outcomes is not None:
                        with options.outcomes.open("a") as file:
                            file.write(json.dumps(asdict(outcomes[-1])) + "\n")
    if options.outcomes is not None:
        return 0
    return summarize(outcomes, "this machine" if here else "guests", options.part)


if __name__ == "__main__":
    sys.exit(main())
