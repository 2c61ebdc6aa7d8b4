"""op=hvd.Adasum while a rank is killed: the others are told, whatever stage they are in.

Floor: tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from job_runner import Jobs

KILLED = """
    import os, signal, threading
    import torch
    import rdmacoll.horovod as hvd

    hvd.init()
    own = torch.randn(300_000)
    if hvd.rank() == 1:
        threading.Timer(AFTER_S, os.kill, (os.getpid(), signal.SIGKILL)).start()
    try:
        while True:
            handles = [hvd.allreduce_async(own, op=hvd.Adasum) for _ in range(3)]
            for handle in handles[:: 1 - 2 * (hvd.rank() % 2)]:
                hvd.synchronize(handle)
    except RuntimeError as error:
        assert "rank 1 is gone" in str(error), error
        print("told", flush=True)
"""


@pytest.mark.parametrize("after_s", [0.2, 0.21, 0.213])
def test_the_others_are_told(tmp_path: Path, after_s: float) -> None:
    script = f"    AFTER_S = {after_s}\n{KILLED}"
    done = Jobs(tmp_path).run_script(script, "-np", "4", "--min-np", "1")
    assert sorted(done.stdout.splitlines()) == ["[0]: told", "[2]: told", "[3]: told"], done.stderr
