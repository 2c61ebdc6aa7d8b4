"""The grid beside MPI: what a cell is, from runs made up for the purpose."""

import json
import subprocess
import sys
from pathlib import Path

GRID = Path(__file__).resolve().parents[2] / "benchmarks/mpi_grid.py"


def row(operation: str, size: int, **turns_us: list[float]) -> dict[str, object]:
    systems = {system: {"turns_us": turns} for system, turns in turns_us.items()}
    return {"operation": operation, "bytes": size, "systems": systems}


def run_of(mpi: str, mpi_us: float) -> dict[str, object]:
    times = {"rdma": [5.0, 50.0, 6.0], "mpi": [mpi_us] * 3}
    rows = [
        row("all_reduce", 4, **times, fake=[4.0, 48.0, 4.0]),  # rounds are paired: 1, 2, 2 us
        row("all_reduce", 1 << 20, **times, fake=[4.0, 48.0, 4.0]),  # nothing is taken off
        row("gather", 4, **times, fake=[4.0, 49.0, 5.0]),
        row("gather", 65536, **times, fake=[5.0, 50.0, 6.0]),  # it copies: the smallest size's
    ]
    return {"versions": {"mpi": mpi}, "rows": rows}


def test_cells_and_the_best_mpi(tmp_path: Path) -> None:
    for name, mpi_us in (("quick", 1.0), ("slow", 4.0)):
        (tmp_path / name).write_text(json.dumps(run_of(name, mpi_us)))
    command = [sys.executable, str(GRID), str(tmp_path / "quick"), str(tmp_path / "slow")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["all_reduce", "2.00", "-", "6.00"] in lines
    assert ["gather", "1.00", "1.00", "-"] in lines
    assert "| all | 4 | 1.50 | 1.50 | 0.38 |" in done.stdout
    assert "2 of 4 cells are within 1.05." in done.stdout
