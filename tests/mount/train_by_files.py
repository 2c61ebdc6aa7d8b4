"""Two processes that train one model, and meet in files alone. It knows nothing of rdmacoll.

    train_by_files.py FOLDER RANK STEPS

Each writes its gradient to a file, and reads both; so both come to the same parameters, which
rank 0 writes after each step. Floor: tests. Thread: the main one.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

RANKS = 2
SIZE = 200_000
LIMIT_S = 60.0


def gradient(parameters: np.ndarray, rank: int, step: int) -> np.ndarray:
    """Of a square, whose least is at this rank's data of this step."""
    data = np.random.default_rng(step * RANKS + rank).standard_normal(SIZE).astype(np.float32)
    return parameters - data


def trained(steps: int) -> np.ndarray:
    """What one process comes to."""
    parameters = np.zeros(SIZE, np.float32)
    for step in range(steps):
        all_of_them = [gradient(parameters, rank, step) for rank in range(RANKS)]
        parameters = parameters - np.float32(0.05) * sum(all_of_them)
    return parameters


def say(folder: Path, name: str, values: np.ndarray) -> None:
    """Nobody sees half of it."""
    new = folder / f"{name}.new"
    with new.open("wb") as file:
        np.save(file, values)
    new.rename(folder / name)


def hear(folder: Path, name: str) -> np.ndarray:
    until = time.monotonic() + LIMIT_S
    while not (folder / name).exists():
        if time.monotonic() > until:
            sys.exit(f"{name} has not come")
        time.sleep(0.002)
    return np.load(folder / name)


def main() -> None:
    folder, rank, steps = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    parameters = np.zeros(SIZE, np.float32)
    for step in range(steps):
        say(folder, f"gradient.{step}.{rank}", gradient(parameters, rank, step))
        all_of_them = [hear(folder, f"gradient.{step}.{other}") for other in range(RANKS)]
        parameters = parameters - np.float32(0.05) * sum(all_of_them)
        if rank == 0:
            say(folder, "parameters", parameters)
        if step > 0:
            os.unlink(folder / f"gradient.{step - 1}.{rank}")
        Path(f"step.{rank}").write_text(str(step))
    if rank != 0:
        say(folder, f"parameters.{rank}", parameters)


if __name__ == "__main__":
    main()
