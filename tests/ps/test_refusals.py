"""What KV refuses, in a job and without one: refusal_cases.py.

Floor: tests.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
import refusal_cases
from case_job import Outcomes, cases_of
from job_runner import Jobs, clean_jobs


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with clean_jobs(tmp_path_factory.mktemp("job")) as jobs:
        yield Outcomes(jobs, refusal_cases, workers=2, servers=1)


@pytest.mark.parametrize("case", cases_of(refusal_cases))
def test_refusals(outcomes: Outcomes, case: str) -> None:
    outcomes.check(case)


def test_without_servers(jobs: Jobs) -> None:
    text = """
        from rdmacoll import ps

        try:
            ps.KV()
        except ValueError as error:
            print(error)
    """
    done = jobs.run_script(text, "-np", "1")
    assert "the job has no servers; start it with rdmarun --servers 1, or more" in done.stdout


def test_a_server_without_room(jobs: Jobs) -> None:
    """New rows are refused, and all others go on."""
    text = """
        import itertools

        import torch
        import torch.distributed as dist

        from rdmacoll import ps

        dist.init_process_group(backend="rdma")
        kv = ps.KV(timeout=20.0)
        kv.init_rows("words", dim=64, optimizer=ps.Adam(lr=1e-3))
        try:
            for first in itertools.count(0, 1000):
                ids = torch.arange(first, first + 1000)
                kv.row_pull("words", ids)
                assert first * 64 * 4 < 64 << 20
        except OSError as error:
            print(error)
        kv.row_push("words", torch.arange(1000), torch.ones(1000, 64)).wait()
        assert torch.all(kv.row_pull("words", torch.arange(1000)) < 0)
        try:
            kv.init("weights", torch.zeros(10))
        except OSError as error:
            print(error)
        dist.destroy_process_group()
    """
    done = jobs.run_script(text, "-np", "1", "--servers", "1", "--server-memory", "16M")
    assert done.returncode == 0, done.stderr
    assert "the server has no room for new rows of table 'words'" in done.stdout
    assert "more bytes of a dense table" in done.stdout
    assert "start more servers, or give them more memory (rdmarun: --server-memory" in done.stdout


def test_pushes_go_on_after_one_that_a_server_has_no_room_for(jobs: Jobs) -> None:
    """Those to the same buckets, in their turn; and once there is room it is taken."""
    text = """
        import pytest
        import torch
        import torch.distributed as dist

        from rdmacoll import ps

        dist.init_process_group(backend="rdma")
        kv = ps.KV(timeout=20.0)
        large = torch.ones(40 * 256 * 1024)  # 40 shards; it takes 80M at each server
        kv.init("holds", large)
        for _ in range(2):
            with pytest.raises(OSError, match="the server has no room for") as refused:
                kv.init("large", large)
            print(refused.value)
            for _ in range(2):
                with pytest.raises(OSError, match="the server has no room for"):
                    kv.push("large", large).wait()
            kv.drop("large")
        names = [f"small {number}" for number in range(150)]
        for name in names:
            kv.init(name, torch.zeros(3))
        kv.wait(*[kv.push(name, torch.ones(3)) for name in names for _ in range(2)])
        assert all(kv.pull(name).tolist() == [2.0] * 3 for name in names)
        assert kv.pull("holds").unique().tolist() == [1.0]
        kv.drop("holds")
        kv.init("large", large)
        kv.push("large", large).wait()
        assert kv.pull("large").unique().tolist() == [2.0]
        print("as it should be")
        dist.destroy_process_group()
    """
    done = jobs.run_script(text, "-np", "1", "--servers", "2", "--server-memory", "110M")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rdmarun: --server-memory" in done.stdout and "as it should be" in done.stdout


def test_without_a_group(jobs: Jobs) -> None:
    # In a process of its own: one of other tests may be a guest of a job by now.
    text = "from rdmacoll import ps; ps.connect(timeout=10)"
    done = subprocess.run([jobs.python, "-c", text], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "ValueError: there is no process group" in done.stderr
