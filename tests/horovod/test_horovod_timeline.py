"""The file that HOROVOD_TIMELINE names, however the script ends.

Floor: tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from job_runner import Jobs

TRAINS = """
    import os, signal, sys, time
    import torch
    import horovod.torch as hvd

    hvd.init()
    for step in range(20):
        hvd.allreduce(torch.ones(3), name="loss")
    if "--killed" in sys.argv:
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    print("trained")
"""
FULL = """
    import os, time
    import torch
    import rdmacoll.horovod as hvd
    from rdmacoll.horovod.names import timeline

    def train():
        for step in range(3):
            hvd.allreduce(torch.ones(3), name="loss")
            time.sleep(0.1)
        print("trained")

    hvd.init()
    hvd.start_timeline("full.json")
    os.dup2(os.open("/dev/full", os.O_WRONLY), timeline._timeline._file._file.fileno())
    train()
    hvd.start_timeline("next.json")
    train()
"""


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path)


def alone(jobs: Jobs, text: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Without a launcher."""
    return subprocess.run(
        [sys.executable, "-m", "rdmacoll.horovod", jobs.script(text), *args],
        cwd=jobs.folder,
        env=jobs.env(env),
        capture_output=True,
        text=True,
        timeout=60,
    )


def count_of(text: str) -> int:
    names = [event.get("name") for event in json.loads(text)]
    return names.count("ALLREDUCE")


def test_it_is_complete_when_a_script_ends(jobs: Jobs) -> None:
    options = ["--horovod", "--timeline-filename", "t.json", "--timeline-mark-cycles"]
    done = jobs.run("-np", "2", *options, jobs.script(TRAINS))
    assert done.returncode == 0, done.stderr
    text = (jobs.folder / "t.json").read_text()
    assert count_of(text) == 20
    assert "CYCLE_START" in text
    assert [path.name for path in jobs.files("t*")] == ["t.json"]


def test_it_can_be_read_when_a_script_was_killed(jobs: Jobs) -> None:
    alone(jobs, TRAINS, "--killed", HOROVOD_TIMELINE="t.json")
    text = (jobs.folder / "t.json").read_text()
    assert count_of(text + "]") == 20
    assert "CYCLE_START" not in text


def test_no_file_before_it_is_started(jobs: Jobs) -> None:
    done = alone(jobs, TRAINS, HOROVOD_TIMELINE="DYNAMIC", HOROVOD_TIMELINE_MARK_CYCLES="1")
    assert (done.stdout, done.stderr) == ("trained\n", "")
    assert [path.name for path in jobs.files("*")] == ["script.py"]


def test_it_may_go_to_where_output_goes(jobs: Jobs) -> None:
    done = alone(jobs, TRAINS, HOROVOD_TIMELINE="/dev/stdout")
    assert count_of(done.stdout.replace("trained\n", "")) == 20, done.stdout


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        (
            {"HOROVOD_TIMELINE": "absent/t.json"},
            "FileNotFoundError: [Errno 2] HOROVOD_TIMELINE=absent/t.json: No such file or "
            "directory; name a file in a folder that is there",
        ),
        (
            {"HOROVOD_TIMELINE": "t.json", "HOROVOD_TIMELINE_MARK_CYCLES": "yes"},
            "ValueError: HOROVOD_TIMELINE_MARK_CYCLES='yes': give 1 for yes, or 0",
        ),
    ],
)
def test_wrong_variables(jobs: Jobs, variables: dict[str, str], says: str) -> None:
    done = alone(jobs, TRAINS, **variables)
    assert done.returncode == 1
    assert says in done.stderr
    assert not jobs.files("t.json")


def test_training_goes_on_when_the_disk_is_full(jobs: Jobs) -> None:
    done = alone(jobs, FULL)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "trained\ntrained\n"
    [said] = done.stderr.splitlines()
    assert said.startswith("rdmacoll.horovod: the timeline ends here, and all else goes on: ")
    assert "No space left on device: 'full.json'" in said
    assert count_of((jobs.folder / "next.json").read_text()) == 3
