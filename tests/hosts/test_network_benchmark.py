"""benchmarks/network.py, as one runs it: hosts, ranks, a long line, figures.

Floor: tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

NETWORK = Path(__file__).resolve().parents[2] / "benchmarks/network.py"
LIMIT_S = 240


@pytest.mark.usefixtures("two_hosts")  # skips where there can be none
def test_gloo_takes_two_latencies_and_is_as_fast_as_itself() -> None:
    done = subprocess.run(
        [sys.executable, str(NETWORK), "late", "--backend", "gloo", "--rounds", "3"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout
    found = re.findall(r"([\d.]+) (?:of latencies|times gloo) \[", done.stdout)
    assert len(found) == 2, done.stdout
    latencies, times_gloo = map(float, found)
    assert 2 <= latencies < 10 and 0.3 < times_gloo < 3, done.stdout
