"""benchmarks/operators/run.py in short: each way is there, in both modes."""

from __future__ import annotations

from pathlib import Path

from bench_process import BIN, run

SCRIPT = Path(__file__).parents[2] / "benchmarks/operators/run.py"


def test_a_small_run(tmp_path: Path) -> None:
    quick = ["--rounds", "2", "--calls", "3"]
    done = run(str(BIN / "rdmarun"), "-np", "2", str(SCRIPT), *quick, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for mode in ("inference_mode", "no_grad"):
        assert f"4 bytes, 2 ranks, {mode}" in done.stdout
    for way in ("no-op", "torch.ops.rdmacoll", "dist.all_reduce", "functional"):
        assert done.stdout.count(f"│ {way} ") == 2
