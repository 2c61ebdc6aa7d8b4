"""The examples under rdmarun over two hosts, as their first lines say otherwise.

What each must print: tests/torch/test_examples.py.

Floor: tests.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "torch"))

from test_examples import (  # type: ignore[import-not-found]
    CHECKS,
    EXAMPLES,
    ROOT,
    first_lines,
)

from hosts.stand import Host

LIMIT_S = 240.0
QUICK = ("02_collectives.py", "08_elastic.py")


@pytest.mark.parametrize(
    "example",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.nightly) for name in EXAMPLES],
)
def test_over_two_hosts(two_hosts: list[Host], example: str, tmp_path: Path) -> None:
    ranks, *arguments = first_lines(example)
    second = int(ranks) // 2
    spread = f"nodeA:{int(ranks) - second},nodeB:{second}"
    done = two_hosts[0].run(
        *(sys.executable, "-m", "rdmacoll.launcher", "-np", ranks, "-H", spread),
        *(str(ROOT / word) if word.endswith(".py") else word for word in arguments),
        env={"OMP_NUM_THREADS": "1"},
        folder=tmp_path,
        timeout_s=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout
    CHECKS[example](done.stdout, int(ranks), tmp_path)
