"""Planted bugs: the simulation must notice each of them.

    python tests/sim/mutants.py [--build build/cpp] [--part K/N] [NAME ...]

A mutant is one line of the engine altered in a copy; the copy is compiled as the build does it,
with the other files of its unit, and linked in front of the engine, so that the sources know
nothing of it. A line that is not found, or found twice, is an error: the list follows the code.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutant import Mutant
from parts import Part, part
from planted_bugs import ENGINE
from planted_name_bugs import NAMES
from planted_server_bugs import SERVERS

MUTANTS = (*ENGINE, *SERVERS, *NAMES)
REPOSITORY = Path(__file__).resolve().parents[2]
# What shows most comes first. The rarest bug shows in one of 6,800 scripts with faults.
PARAMETER_SERVER_RUNS = (("Unconfirmed.*", 1), ("ParameterServer.*", 300))
NAME_RUNS = (("Names.*", 3000),)
RUNS = (
    ("Found.*", 1),
    ("Streams.*", 200),
    ("Snapshots.*", 200),
    ("NotifiedWrites.*", 200),
    ("Updates.*", 200),
    ("Sessions.*", 200),
    ("Simulation.Random*", 400),
    ("Hosts.*", 400),
    ("DirectPlacement.*", 2000),
    ("Shrinking.*", 600),
    ("Simulation.Faults*", 7000),
)
LIMIT_S = 300


def run(command: list[str] | str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload]
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )


def included_by(unit: Path) -> list[Path]:
    """The sources that the build compiles as one."""
    if not unit.name.startswith("unity_"):
        return []
    return [Path(name) for name in re.findall(r'^#include "(.*)"$', unit.read_text(), re.MULTILINE)]


class Build:
    """How the build compiles a source and links the simulation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        entries = json.loads((folder / "compile_commands.json").read_text())
        self.compile = {}  # of each source: the unit that is compiled, and how
        for entry in entries:
            unit = Path(entry["file"]).resolve()
            for source in (unit, *included_by(unit)):
                self.compile[source] = (unit, entry["command"])
        ninja = Path(sys.executable).with_name("ninja")
        steps = run([str(ninja), "-C", str(folder), "-t", "commands", "sim_test"]).stdout
        self.link = steps.strip().splitlines()[-1]
        if " -o sim_test " not in self.link:
            raise SystemExit(f"how the simulation is linked has changed: {self.link}")

    def make(self, mutant: Mutant, scratch: Path) -> Path:
        """The simulation with the mutant in it."""
        source = REPOSITORY / mutant.file
        text = source.read_text()
        if text.count(mutant.line + "\n") != 1:
            raise SystemExit(f"{mutant.name}: {mutant.file} does not have once: {mutant.line}")
        altered, compiled = scratch / source.name, scratch / "mutant.o"
        altered.write_text(text.replace(mutant.line, mutant.altered))
        unit, command = self.compile[source]
        if unit != source:
            altered_unit = scratch / "unit.cc"
            altered_unit.write_text(unit.read_text().replace(str(source), str(altered)))
            altered = altered_unit
        words = shlex.split(command)
        for option, value in (("-o", compiled), ("-MF", scratch / "mutant.d"), ("-c", altered)):
            if option in words:
                words[words.index(option) + 1] = str(value)
        self._must([*words, "-Wno-error"], mutant)
        program = scratch / "sim_test"
        self._must(self.link.replace(" -o sim_test ", f" {compiled} -o {program} "), mutant)
        return program

    def _must(self, command: list[str] | str, mutant: Mutant) -> None:
        ran = run(command, cwd=self.folder, shell=isinstance(command, str))
        if ran.returncode != 0:
            raise SystemExit(f"{mutant.name}: {command} failed:\n{ran.stdout}")


def is_caught(build: Build, mutant: Mutant) -> bool:
    with tempfile.TemporaryDirectory(prefix="rdmacoll-mutant-") as scratch:
        program = str(build.make(mutant, Path(scratch)))
        return any(fails(program, tests, seeds) for tests, seeds in runs_for(mutant))


def runs_for(mutant: Mutant) -> tuple[tuple[str, int], ...]:
    if mutant in SERVERS:
        return PARAMETER_SERVER_RUNS
    return NAME_RUNS if mutant in NAMES else RUNS


def fails(program: str, tests: str, seeds: int) -> bool:
    environment = os.environ | {"RDMACOLL_SIM_SEEDS": str(seeds)}
    try:
        command = [program, f"--gtest_filter={tests}", "--gtest_fail_fast"]
        ran = run(command, env=environment, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return True  # it hangs, which the same seeds do not without it
    return ran.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build/cpp"))
    parser.add_argument("--part", type=part, default=Part(), metavar="K/N", help="of those named")
    parser.add_argument("names", nargs="*", metavar="NAME", help="part of a name; none: all")
    arguments = parser.parse_args()
    named = [
        mutant
        for mutant in MUTANTS
        if not arguments.names or any(name in mutant.name for name in arguments.names)
    ]
    wanted = arguments.part.of(named)
    build = Build(arguments.build.resolve())
    survived = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        caught = pool.map(lambda mutant: is_caught(build, mutant), wanted)
        for mutant, noticed in zip(wanted, caught, strict=True):
            print(f"{'caught' if noticed else 'SURVIVED':9} {mutant.name}", flush=True)
            survived += not noticed
    print(f"{len(wanted)} of {len(MUTANTS)} planted bugs, {survived} survived")
    sys.exit(1 if survived or not wanted else 0)


if __name__ == "__main__":
    main()
