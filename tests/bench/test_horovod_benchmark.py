"""benchmarks/training/horovod_face.py on one model: all of its rows are there."""

from __future__ import annotations

from pathlib import Path

from bench_process import BIN, run

SCRIPT = Path(__file__).parents[2] / "benchmarks/training/horovod_face.py"


def test_a_small_run(tmp_path: Path) -> None:
    quick = ["--pairs", "2", "--workloads", "mlp-4M", "--idle-s", "0.2"]
    done = run(str(BIN / "rdmarun"), "-np", "2", str(SCRIPT), *quick, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for row in ("names", "step, mlp-4M", "idle"):
        assert row in done.stdout
    assert "(95%)" in done.stdout
