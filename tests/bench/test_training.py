"""benchmarks/training/run.py on one model: what it prints and writes, and that losses count."""

from __future__ import annotations

import json
from pathlib import Path

from bench_process import BIN, run

FOLDER = Path(__file__).parents[2] / "benchmarks/training"
RANKS = [str(BIN / "rdmarun"), "--no-tag-output", "-np", "2"]
QUICK = ["--workloads", "mlp-4M", "--rounds", "2", "--turn-ms", "1"]
SYSTEMS = ["rdma", "rdma, heap", "gloo", "alone", "alone, heap"]


def test_a_small_run(tmp_path: Path) -> None:
    written = ["--json", "result.json", "--plot", "result.svg"]
    done = run(*RANKS, str(FOLDER / "run.py"), *QUICK, *written, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["ranks"] == 2 and result["machine"]["copy_gb_per_s"] > 0
    jobs = [(row["workload"], row["parallelism"]) for row in result["rows"]]
    assert jobs == [("mlp-4M", "DDP"), ("mlp-4M", "FSDP2")]
    for row in result["rows"]:
        assert list(row["systems"]) == SYSTEMS
        assert row["systems"]["gloo"]["times_baseline"] == 1
        assert all(row["systems"][name]["communication"] == 0 for name in SYSTEMS[3:])
        assert f"{row['systems']['rdma']['samples_per_s']:.0f}" in done.stdout
    drawn = (tmp_path / "result.svg").read_text()
    shown = ("rdmacoll, heap", ">gloo<", "mlp-4M,", "samples per second", "Communication: less")
    for text in shown:
        assert text in drawn


WRONG_LOSSES = """
import sys
sys.path.insert(0, {folder!r})
import run, training_jobs

class Wrong(training_jobs.Trainer):
    def turn_s(self, steps):
        seconds = super().turn_s(steps)
        if self._system.name == "rdma, heap":
            self.losses[-1] += 0.001
        return seconds

run.Trainer = Wrong
run.main()
"""


def test_losses_that_differ(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text(WRONG_LOSSES.format(folder=str(FOLDER)))
    done = run(*RANKS, str(script), *QUICK, folder=tmp_path)
    assert done.returncode == 1
    assert "mlp-4M: the losses on rdma, heap differ from gloo's by up to 0.001" in done.stderr


def test_wrong_arguments(tmp_path: Path) -> None:
    done = run(*RANKS, str(FOLDER / "run.py"), "--rounds", "0", folder=tmp_path)
    assert done.returncode == 2
    assert "--rounds 0 --turn-ms 300: give 1 or more rounds" in done.stderr
