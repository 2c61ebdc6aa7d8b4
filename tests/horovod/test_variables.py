"""Horovod's variables: which do something, and what is said of those that do not.

Floor: tests.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from job_runner import Jobs

from rdmacoll.base.horovod_variables import about_variables

TWICE = """
    import os
    import torch
    import rdmacoll.horovod as hvd

    for _ in range(2):
        hvd.init()
        hvd.allreduce(torch.ones(1))
        hvd.shutdown()
    print(os.environ.get("RDMACOLL_LOG"), os.environ.get("HOROVOD_ELASTIC"))
"""
LATE = """
    import time
    import torch
    import rdmacoll.horovod as hvd

    hvd.init()
    if hvd.rank() == 1:
        time.sleep(2.5)
    hvd.allreduce(torch.ones(1))
    hvd.barrier()
"""


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path)


def alone(jobs: Jobs, **variables: str) -> subprocess.CompletedProcess[str]:
    """Started by no launcher of ours."""
    command = [jobs.python, jobs.script(TWICE)]
    env = jobs.env(variables)
    for name in "RANK", "WORLD_SIZE":
        env.pop(name, None)
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"HOROVOD_TIMELINE": "t", "HOROVOD_CYCLE_TIME": "", "PATH": "/"}, []),
        ({"HOROVOD_LOCAL_RANK": "1", "HOROVOD_ELASTIC": "1", "HOROVOD_VERSION": "0.28.1"}, []),
        (
            {"HOROVOD_AUTOTUNE": "1", "HOROVOD_CACHE_CAPACITY": "0", "HOROVOD_AUTOTUNE_LOG": "a"},
            [
                "these variables change nothing here: HOROVOD_AUTOTUNE, HOROVOD_AUTOTUNE_LOG "
                "(`rdmacoll tune` measures before a job, and nothing does while it trains); "
                "HOROVOD_CACHE_CAPACITY (ranks remember all names)"
            ],
        ),
        (
            {"HOROVOD_STALL_CHECK_TIME": "5", "HOROVOD_CYCLE_TIMES": "2"},
            [
                "HOROVOD_CYCLE_TIMES is no variable of Horovod",
                "HOROVOD_STALL_CHECK_TIME is no variable of Horovod; did you mean "
                "HOROVOD_STALL_CHECK_TIME_SECONDS?",
            ],
        ),
        (
            {"HOROVOD_log_level": "INFO"},
            ["HOROVOD_log_level is no variable of Horovod; did you mean HOROVOD_LOG_LEVEL?"],
        ),
    ],
)
def test_what_is_said(environ: dict[str, str], says: list[str]) -> None:
    assert about_variables(environ) == says


def test_rank_0_says_it_once(jobs: Jobs) -> None:
    command = ["-np", "2", jobs.script(TWICE)]
    done = jobs.run(*command, HOROVOD_CYCLE_TIME="5", HOROVOD_LOG_LEVELS="INFO")
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "HOROVOD_" in line]
    assert said == [
        "[0]: rdmacoll.horovod: these variables change nothing here: HOROVOD_CYCLE_TIME (there are "
        "no cycles: an operation starts once all ranks want it)",
        "[0]: rdmacoll.horovod: HOROVOD_LOG_LEVELS is no variable of Horovod; did you mean "
        "HOROVOD_LOG_LEVEL?",
    ]


@pytest.mark.parametrize(
    ("variables", "level"),
    [
        ({}, "None"),
        ({"HOROVOD_LOG_LEVEL": "trace"}, "debug"),
        ({"HOROVOD_LOG_LEVEL": "INFO", "RDMACOLL_LOG": "warn"}, "warn"),
    ],
)
def test_the_level_is_the_engines(jobs: Jobs, variables: dict[str, str], level: str) -> None:
    done = alone(jobs, **variables)
    assert (done.returncode, done.stdout) == (0, f"{level} None\n"), done.stderr
    assert ("info: joined a group" in done.stderr) == (level == "debug")


def test_below_warnings_nothing_is_said(jobs: Jobs) -> None:
    done = alone(jobs, HOROVOD_LOG_LEVEL="FATAL", HOROVOD_CYCLE_TIME="5")
    assert (done.stdout, done.stderr) == ("error None\n", "")


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        (
            {"HOROVOD_LOG_LEVEL": "LOUD"},
            "ValueError: HOROVOD_LOG_LEVEL='LOUD': give one of TRACE, DEBUG, INFO, WARNING, ERROR",
        ),
        (
            {"HOROVOD_STALL_CHECK_DISABLE": "yes"},
            "ValueError: HOROVOD_STALL_CHECK_DISABLE='yes': give 1 for yes, or 0",
        ),
        (
            {"HOROVOD_GLOO_RENDEZVOUS_ADDR": "10.0.0.1", "HOROVOD_SIZE": "4"},
            "RuntimeError: horovodrun has started this rank, and rdmacoll's ranks do not meet by "
            "it; start the script with rdmarun --horovod -np 4",
        ),
    ],
)
def test_wrong_variables(jobs: Jobs, variables: dict[str, str], says: str) -> None:
    done = alone(jobs, **variables)
    assert done.returncode == 1
    assert says in done.stderr


def test_nobody_looks_for_stalls_where_that_is_off(jobs: Jobs) -> None:
    limits = {
        "HOROVOD_STALL_CHECK_DISABLE": "1",
        "HOROVOD_STALL_CHECK_TIME_SECONDS": "1",
        "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "2",
    }
    done = jobs.run("-np", "2", jobs.script(LATE), **limits)
    assert done.returncode == 0, done.stderr
    assert "rdmacoll.horovod" not in done.stderr


def test_an_elastic_job_says_that_it_is_one(jobs: Jobs) -> None:
    elastic = ["--min-np", "1", "--max-restarts", "1", "--elastic"]
    done = jobs.run("-np", "2", *elastic, "--no-tag-output", jobs.script(TWICE))
    assert (done.returncode, done.stdout) == (0, "None 1\n" * 2), done.stderr
