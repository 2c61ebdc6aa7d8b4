"""torchft on rdmacoll.create_process_group(): a replica is killed, the others go on, it comes back.

Floor: tests.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed as dist

pytest.importorskip("torchft", reason="tests/frameworks/requirements.txt is not installed")
LIMIT_S = 240


def replica(rank: int, store: dist.TCPStore, begin: int) -> "subprocess.Popen[str]":
    script = str(Path(__file__).with_name("replica.py"))
    return subprocess.Popen(
        [sys.executable, script, str(rank), str(store.port), str(begin)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.timeout(2 * LIMIT_S)
def test_a_replica_is_killed_and_comes_back() -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    first = [replica(rank, store, 1) for rank in range(3)]
    started = [*first]
    try:
        first[2].communicate(timeout=LIMIT_S)
        assert first[2].returncode == -signal.SIGKILL
        back = replica(2, store, 3)
        started.append(back)
        for process in (*first[:2], back):
            said, _ = process.communicate(timeout=LIMIT_S)
            assert process.returncode == 0 and "SURVIVED" in said, said
    finally:
        for process in started:
            process.kill()
            process.wait()
