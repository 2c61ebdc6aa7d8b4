"""Who loads what: MPI belongs to agents of several hosts, and no launch waits for torch.

Floor: tests.
"""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("rdmarun", ["torch", "mpi4py"]),
        ("agent.main", ["torch", "mpi4py"]),  # before it forks: the subreaper
        ("agent.supervisor", ["torch", "mpi4py"]),
    ],
)
def test_not_loaded(module: str, absent: list[str], tmp_path: Path) -> None:
    code = f"import rdmacoll.launcher.{module}, sys; print(*set({absent}) & sys.modules.keys())"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("\n", "")
