"""`rdmacoll tune` over two hosts: its table says what links cost, and forecasts take it.

Floor: tests.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hosts.stand import Host
from rdmacoll._extension import extension

RDMARUN = [sys.executable, "-m", "rdmacoll.launcher", "--no-tag-output"]
TUNE = ["-m", "rdmacoll", "tune", "--sizes", "4K,256K", "--rounds", "1"]
LIMIT_S = 240.0


def test_links_are_fitted_and_read_back(two_hosts: list[Host], tmp_path: Path) -> None:
    done = two_hosts[0].run(
        *(*RDMARUN, "-np", "4", "-H", "nodeA:2,nodeB:2", *TUNE),
        *("--collectives", "all_reduce,broadcast", "--out", str(tmp_path / "table")),
        env={"OMP_NUM_THREADS": "1"},
        folder=tmp_path,
        timeout_s=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout
    table = (tmp_path / "table").read_text()
    rows = [line for line in table.splitlines() if line and line[0] != "#"]
    assert [row.split()[:2] for row in rows[:2]] == [["link", "network"], ["link", "memory"]]
    assert all(row in done.stdout for row in rows[:2]), done.stdout
    assert "of the best measured in " in done.stdout and " of 4 cells" in done.stdout
    group = extension().PlannedGroup("2x2", 1)
    assert not group.measured_links
    group.use_tuning(table)
    assert group.measured_links
    assert f"broadcast hosts=2x2 world=4 up_to=any {group.chosen('broadcast', 256 << 10)}" in rows
