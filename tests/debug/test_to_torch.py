"""Converted dumps, as torch's own flight-recorder analyser reads and judges them."""

import subprocess
import sys
from pathlib import Path

from made_dumps import collective, dump_of, moved

from rdmacoll.debug.dumps import Dump
from rdmacoll.debug.to_torch import write_for_torch

EVERY_KIND = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all",
              "gather", "scatter", "barrier")  # fmt: skip


def analysed(folder: Path, *dumps: Dump) -> str:
    write_for_torch(dumps, folder)
    finished = subprocess.run(
        [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


def test_a_missing_rank_is_named(tmp_path: Path) -> None:
    done = [collective(1), moved(1, "send"), collective(2)]
    text = analysed(
        tmp_path,
        dump_of(0, 3, *done, collective(3, "running")),
        dump_of(1, 3, *done, collective(3, "running")),
        dump_of(2, 3, collective(1), collective(2)),
    )
    assert "Not all ranks joining collective, sequence number: 3" in text
    assert "missing ranks: {2}" in text


def test_a_mismatch_is_named(tmp_path: Path) -> None:
    text = analysed(
        tmp_path,
        dump_of(0, 2, collective(1), collective(2, "running")),
        dump_of(1, 2, collective(1), collective(2, "running", bytes=8000)),
    )
    assert "Collective sequence number: 2 has errors" in text
    assert "Culprit rank 1" in text
    assert "SIZE_OR_SYNTAX_MISMATCH" in text


def test_another_operation_is_named(tmp_path: Path) -> None:
    text = analysed(
        tmp_path,
        dump_of(0, 2, collective(1, "running")),
        dump_of(1, 2, collective(1, "running", operation="broadcast")),
    )
    assert "COLLECTIVE_TYPE_MISMATCH" in text


def test_what_matches_is_no_error_whatever_it_is(tmp_path: Path) -> None:
    ranks = []
    for rank in range(3):
        # The root of a gather counts everybody's share, the others their own.
        done = [
            collective(
                number,
                operation=name,
                bytes=300 if name in ("gather", "scatter") and rank else 900,
                dtype="Float32" if "reduce" in name else "",
            )
            for number, name in enumerate(EVERY_KIND, 1)
        ]
        ranks.append(dump_of(rank, 3, *done))
    text = analysed(tmp_path, *ranks)
    for complaint in ("errors", "mismatch", "Not all ranks", "cannot decide"):
        assert complaint not in text, text


def test_what_one_rank_has_forgotten_is_no_error(tmp_path: Path) -> None:
    text = analysed(
        tmp_path,
        dump_of(0, 2, *(collective(number) for number in range(1, 6))),
        dump_of(1, 2, *(collective(number) for number in range(4, 6))),
    )
    assert "Not all ranks" not in text, text
