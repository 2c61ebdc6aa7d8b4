"""How we stand against MPI, cell by cell: from runs of `rdmacoll bench --vs mpi,fake`, one for each
MPI, the two tables of docs/LABORATORY.md.

    rdmacoll bench -np 2 all --sizes 4:256M:4 --vs mpi,fake --json mpich.json     # and so on
    python benchmarks/mpi_grid.py mpich.json impi.json openmpi.json

A cell is our time over theirs of one operation and size, the median of the rounds' ratios; "best"
is the MPI that is best in that cell. Below 1 MB what the same call costs on torch's own fake
backend is taken off ours: a program of mpi4py does not go through torch. That backend copies
tensors in FAKE_COPIES_FOR, which flatters us: of these its call on the smallest size is taken, and
the last line of the first table is without them.
"""

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

MIB = 1 << 20
TORCH_COUNTS_FROM_BYTES = MIB
FAKE_COPIES_FOR = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
GOAL = 1.05
BANDS = {
    "4 B to 4 KB": range(4096 + 1),
    "16 KB to 256 KB": range(4097, MIB),
    "1 MB and more": range(MIB, 1 << 62),
    "all": range(1 << 62),
}
Cells = dict[tuple[str, int], float]  # by operation and bytes


def turns_us(row: dict[str, Any], system: str) -> list[float]:
    return row["systems"][system]["turns_us"]


def ratio(row: dict[str, Any], in_torch_us: list[float]) -> float:
    ours_us = turns_us(row, "rdma")
    if row["bytes"] < TORCH_COUNTS_FROM_BYTES:
        ours_us = [max(0.0, ours - torch) for ours, torch in zip(ours_us, in_torch_us, strict=True)]
    return median(ours / mpi for ours, mpi in zip(ours_us, turns_us(row, "mpi"), strict=True))


def cells_of(path: Path) -> tuple[str, Cells]:
    result = json.loads(path.read_text())
    cells: Cells = {}
    smallest: dict[str, list[float]] = {}
    for row in result["rows"]:
        operation, in_torch_us = row["operation"], turns_us(row, "fake")
        if operation in FAKE_COPIES_FOR:
            in_torch_us = smallest.setdefault(operation, in_torch_us)
        cells[operation, row["bytes"]] = ratio(row, in_torch_us)
    return result["versions"]["mpi"], cells


def print_bands(runs: dict[str, Cells]) -> None:
    print("| sizes | cells | " + " | ".join(runs) + " |")
    print("|---|---|" + "---|" * len(runs))
    keys = list(next(iter(runs.values())))
    bands = {name: [key for key in keys if key[1] in sizes] for name, sizes in BANDS.items()}
    bands["all but " + ", ".join(FAKE_COPIES_FOR)] = [
        key for key in keys if key[0] not in FAKE_COPIES_FOR
    ]
    for name, band in bands.items():
        medians = (f"{median(run[key] for key in band):.2f}" for run in runs.values())
        print(f"| {name} | {len(band)} | " + " | ".join(medians) + " |")


def print_operations(best: Cells) -> None:
    sizes = sorted({size for _, size in best if size})
    print("".join(["bytes".ljust(14), *(f"{size:>11}" for size in sizes)]))
    for operation in dict.fromkeys(operation for operation, _ in best):
        if (operation, 0) in best:
            print(f"{operation}, no bytes: {best[operation, 0]:.2f}")
            continue
        cells = (best.get((operation, size)) for size in sizes)
        line = "".join(f"{'-' if cell is None else f'{cell:.2f}':>11}" for cell in cells)
        print(operation.ljust(14) + line)


def main(paths: list[Path]) -> None:
    if not paths:
        sys.exit(__doc__)
    runs = dict(cells_of(path) for path in paths)
    best = {key: max(run[key] for run in runs.values()) for key in next(iter(runs.values()))}
    print_bands({"best": best, **runs})
    within = sum(cell <= GOAL for cell in best.values())
    print(f"\n{within} of {len(best)} cells are within {GOAL}.\n")
    print_operations(best)


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
