"""Runs example scripts of a checkout of Horovod, as they are and with their import changed.

    python tests/horovod/upstream/scripts.py CHECKOUT

As they are they need rdmarun's --horovod, with rdmacoll's import they do not. What they print says
whether they have trained: every epoch, a loss that falls, an accuracy.
Floor: tests. Thread: the main one.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from script_job import Kill, Output, run_job

SAID = 40  # lines of a job that has failed
LEAST_ACCURACY = 90  # percent; who guesses has 10


@dataclass(frozen=True)
class Case:
    """rounds: epochs, or iterations of a benchmark."""

    script: str
    rounds: int
    ranks: int = 2
    options: str = ""
    kill: Kill | None = None

    @property
    def is_mnist(self) -> bool:
        return "mnist" in self.script

    @property
    def args(self) -> list[str]:
        if self.is_mnist:
            same = f"--epochs {self.rounds} --batch-size 32 --lr 0.03"
        else:
            same = f"--num-iters {self.rounds} --batch-size 4 --num-warmup-batches 2"
        return f"{same} {self.options}".split()

    @property
    def launcher_options(self) -> list[str]:
        options = f"-np {self.ranks}"
        if self.kill is not None:
            options += f" --min-np {self.ranks - 1}"
            options += " --elastic --max-restarts 1" if self.kill.comes_back else ""
        return options.split()

    def stays_away(self, rank: int) -> bool:
        return self.kill is not None and self.kill.rank == rank and not self.kill.comes_back

    @property
    def how(self) -> str:
        return ", ".join(filter(None, [self.options, self.kill.how if self.kill else ""]))

    @property
    def left(self) -> list[int]:
        """Who is there at the end."""
        return [rank for rank in range(self.ranks) if not self.stays_away(rank)]


PLAIN = "examples/pytorch/"
ELASTIC = "examples/elastic/pytorch/"

# Whoever is lost is rank 0 at times, whose state the others would have taken.
CASES = [
    Case(f"{PLAIN}pytorch_mnist.py", 4),
    Case(f"{PLAIN}pytorch_mnist.py", 4, options="--use-adasum"),
    Case(f"{PLAIN}pytorch_mnist.py", 4, options="--fp16-allreduce --gradient-predivide-factor 2"),
    Case(f"{PLAIN}pytorch_synthetic_benchmark.py", 3),
    Case(f"{ELASTIC}pytorch_mnist_elastic.py", 4),
    Case(f"{ELASTIC}pytorch_mnist_elastic.py", 6, 4, kill=Kill(2, "Train Epoch: 2 ", False)),
    # A new rank takes about as long as a quarter of these epochs to start.
    Case(f"{ELASTIC}pytorch_mnist_elastic.py", 60, 4, kill=Kill(0, "Train Epoch: 2 ", True)),
    Case(f"{ELASTIC}pytorch_synthetic_benchmark_elastic.py", 3),
    Case(f"{ELASTIC}pytorch_synthetic_benchmark_elastic.py", 10, 4, kill=Kill(0, "Iter #1", False)),
]


def mnist_faults(case: Case, output: Output) -> Iterator[str]:
    trained = [
        (rank, int(found[1]), float(found[2]))
        for rank, found in output.of_ranks(r"Train Epoch: (\d+) .*Loss: ([\d.]+)")
    ]
    for rank in case.left:
        epochs = {epoch for one, epoch, _ in trained if one == rank}
        if case.kill is not None and case.kill.rank == rank:
            again = output.of_ranks(r"Train Epoch: (\d+) ", output.killed_at or 0)
            back = {int(found[1]) for one, found in again if one == rank}
            if case.rounds not in back:
                yield f"rank {rank} did not come back before the others were through"
        elif epochs != set(range(1, case.rounds + 1)):
            yield f"rank {rank} printed the epochs {sorted(epochs)} of {case.rounds}"
        losses = {epoch: loss for one, epoch, loss in trained if one == rank}
        first, last = losses.get(1, 0.0), losses.get(case.rounds, 0.0)
        if last > first / 2:
            yield f"rank {rank} had a loss of {first} in the first epoch, of {last} in the last"
    accuracies = [float(found[1]) for _, found in output.of_ranks(r"Accuracy: ([\d.]+)%")]
    tests = 1 if case.script.startswith(ELASTIC) else case.rounds
    if len(accuracies) != tests or accuracies[-1] < LEAST_ACCURACY:
        yield f"accuracies of {accuracies}, not {tests} with {LEAST_ACCURACY}% or more at the end"


def benchmark_faults(case: Case, output: Output) -> Iterator[str]:
    made = {int(found[1]) for _, found in output.of_ranks(r"Iter #(\d+): [\d.]+ img/sec")}
    if made != set(range(case.rounds)):
        yield f"{len(made)} iterations, not {case.rounds}"
    sizes = [int(found[1]) for _, found in output.of_ranks(r"Total img/sec on (\d+) CPU")]
    if sizes != [len(case.left)]:
        yield f"totals of {sizes} ranks, not one of {len(case.left)}"


def as_it_is(_folder: Path, script: Path) -> tuple[list[str], Path]:
    return ["--horovod"], script


def import_changed(folder: Path, script: Path) -> tuple[list[str], Path]:
    """`import horovod` goes, too: a script that has it calls horovod.run() there, if asked to."""
    text = script.read_text().replace("\nimport horovod\n", "\n")
    changed = text.replace("import horovod.torch as hvd", "import rdmacoll.horovod as hvd")
    if changed == text:
        raise SystemExit(f"{script} does not import horovod.torch as it did")
    copy = folder / script.name
    copy.write_text(changed)
    return [], copy


Form = Callable[[Path, Path], tuple[list[str], Path]]


def run(case: Case, form: Form, script: Path) -> Output:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options, script = form(folder, script)
        output = run_job(folder, [*case.launcher_options, *options], script, case.args, case.kill)
    faults = mnist_faults if case.is_mnist else benchmark_faults
    output.faults += faults(case, output)
    return output


def main() -> int:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    checkout = Path(sys.argv[1]).resolve()
    if missing := [one.script for one in CASES if not (checkout / one.script).is_file()]:
        raise SystemExit(f"{checkout} is no checkout of Horovod: {missing[0]} is not there")
    failed = []
    for case in CASES:
        for form in as_it_is, import_changed:
            begin = time.monotonic()
            output = run(case, form, checkout / case.script)
            row = f"{Path(case.script).name:40} {form.__name__.replace('_', ' '):15}"
            took = f"{time.monotonic() - begin:4.0f} s"
            result = "FAILED" if output.faults else "ok"
            print(f"{row} {case.ranks} ranks {took}  {result:7} {case.how}", flush=True)
            if output.faults:
                failed.append((row, output))
    for row, output in failed:
        print(f"\n{row}: {'; '.join(output.faults)}", *output.lines[-SAID:], sep="\n")
    print(f"{len(failed)} of {2 * len(CASES)} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
