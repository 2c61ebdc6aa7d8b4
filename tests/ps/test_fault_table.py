"""The fault table: a server is lost, in each way, while two workers do each thing, and nothing that
was acknowledged is lost or done twice: fault_worker.py. Most of it is for the night.

Floor: tests.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from job_runner import Jobs

WAYS = ("killed", "stopped for a while", "stopped for good", "killed one after the other")
WHILE = ("make", "push", "push_rows", "pull", "pull_rows", "save", "hand_over", "sync", "stale")
EVERY_DAY = {
    ("killed", "hand_over"),
    ("killed", "sync"),
    ("stopped for good", "push_rows"),
    ("killed one after the other", "push"),
}


@pytest.mark.parametrize(
    ("way", "meanwhile"),
    [
        pytest.param(*cell, marks=[] if cell in EVERY_DAY else [pytest.mark.nightly])
        for cell in product(WAYS, WHILE)
    ],
)
def test_nothing_is_lost_or_done_twice(jobs: Jobs, way: str, meanwhile: str) -> None:
    worker = str(Path(__file__).with_name("fault_worker.py"))
    done = jobs.run("-np", "2", "--servers", "3", jobs.python, worker, way, meanwhile)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("exact") == 2
    assert way == "stopped for a while" or "server " in done.stderr
