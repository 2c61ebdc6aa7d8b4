"""What users get wrong: each a clear error with a remedy, none a start.

Floor: tests.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from job_runner import LIMIT_S, TWO_HOSTS, Jobs
from namespaces import in_namespace
from rdmacoll.launcher.base.hosts import MOST_RANKS


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "what shall the ranks run?"),
        (["s.py"], "how many ranks? give -np N"),
        (["-np", "2"], "what shall the ranks run?"),
        (["-np", "0", "s.py"], "0 is not a positive number"),
        (["-np", "two", "s.py"], "'two' is no whole number"),
        (["-np", "1e3", "s.py"], "'1e3' is no whole number"),
        (["-np", "", "s.py"], "'' is no whole number"),
        (["-np", "-1", "s.py"], "'-1' is no whole number"),
        (["-np", "9" * 5000, "s.py"], "is no whole number from 0 to 999999999"),
        (["-np", "100000", "s.py"], "-np 100000: a group can have 16384 ranks at most"),
        (["-np", "2", "--bogus", "s.py"], "--bogus"),
        (["-np", "3", "-H", "localhost:2", "s.py"], "-np 3: there are only 2 slots"),
        (["-np", "1", "-H", "localhost:x", "s.py"], "`x` is no number of slots"),
        (["-np", "1", "--hostfile", "none", "s.py"], "--hostfile none: No such file"),
        (["-np", "1", "--hostfile", "/dev/zero", "s.py"], "is larger than 16 MiB"),
        (["-np", "1", "-H", "", "s.py"], "`` names no host"),
        (["-np", "1", "-H", "[::1", "s.py"], "'[::1' is no IPv6 address"),
        (["-np", "1", "-H", "a", "--hostfile", "f", "s.py"], "not allowed with"),
        (["-np", "1", "-x", "=1", "s.py"], "names no variable"),
        (["-np", "1", "-x", "NEVER_SET", "s.py"], "write -x NEVER_SET=VALUE"),
        (["-np", "1", "--start-timeout", "0", "s.py"], "'0' is no number of seconds above 0"),
        (["-np", "1", "--start-timeout", "nan", "s.py"], "'nan' is no number of seconds"),
        (["-np", "1", "--start-timeout", "1e300", "s.py"], "and up to 1000000"),
        (["-np", "1", "--start-timeout", "soon", "s.py"], "'soon' is no number of seconds"),
        (["-np", "1", "--max-restarts", "x", "s.py"], "'x' is no whole number from 0"),
        (["-np", "1", "--output-filename", "", "s.py"], "'' names no folder"),
        (["-np", "1", "-x", "", "s.py"], "names no variable"),
        (["-np", "1", "--servers", "-1", "s.py"], "'-1' is no whole number"),
        (["-np", "1", "--servers", "two", "s.py"], "'two' is no whole number"),
        (["-np", "1", "--servers", "1025", "s.py"], "a job can have 1024 servers at most"),
        (["-np", "1", "--servers-on", "a", "s.py"], "--servers-on without servers: say how many"),
        (["-np", "1", "--servers", "0", "--server-restarts", "1", "s.py"], "without servers"),
        (["-np", "1", "--server-memory", "8G", "s.py"], "--server-memory without servers"),
        (["-np", "1", "--servers", "1", "--server-restarts", "x", "s.py"], "'x' is no whole"),
        (["-np", "1", "--servers", "1", "--server-memory", "8GB", "s.py"], "'8GB' is not a size"),
        (["-np", "1", "--servers", "1", "--server-memory", "0", "s.py"], "a server needs memory"),
        (["-np", "1", "--server-replicas", "1", "s.py"], "--server-replicas without servers"),
        (["-np", "1", "--mount", "a", "s.py"], "--mount without servers: say how many, with"),
        (["-np", "1", "--servers", "1", "--mount", "", "s.py"], "'' names no folder"),
        (["-np", "1", "--servers", "2", "--server-replicas", "3", "s.py"], "invalid choice: 3"),
        (
            ["-np", "2", "-H", "a,b", "--servers", "1", "--servers-on", "b,c", "s.py"],
            "--servers-on b,c: 'c' is no host of this job, whose ranks are on a, b",
        ),
        (
            ["-np", "1", "-H", "a,b", "--servers", "1", "--servers-on", "b", "s.py"],
            "--servers-on b: 'b' is no host of this job, whose ranks are on a",
        ),
        (["-np", "1", "missing.py"], "missing.py: there is no such script"),
        (["-np", "1", sys.executable], "what shall it run? give a python script behind it"),
        (["-np", "1", "python9.9", "s.py"], "python9.9: there is no such script"),
        (["-np", "1", "no_such"], "there is no such script, and no such command on PATH (a module"),
        (["-np", "1", "-m", "--no-python", "json"], "-m with --no-python: only python runs"),
        (["-np", "1", "--no-python", "s.py"], "s.py: there is no such script, and no such"),
        (["-np", "1", "--preload", "json", "true"], "--preload with the command true: only python"),
        (["-np", "2", "--nproc-per-node", "1", "s.py"], "-np 2: there are only 1 slots"),
        (["--nproc-per-node", "gpu", "s.py"], "'gpu' would count GPUs; say how many ranks"),
        (["--nproc-per-node", "0", "s.py"], "0 is not a positive number"),
        (["-np", "1", "--bind", "socket", "s.py"], "invalid choice: 'socket'"),
        (["-np", "2", "--local-ranks-filter", "0,2", "s.py"], "filter 2: local ranks are 0 to 1"),
        (["-np", "2", "--local-ranks-filter", "", "s.py"], "'' is no whole number"),
    ],
)
def test_command_line(jobs: Jobs, args: list[str], says: str) -> None:
    done = jobs.run(*args)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_hostfile_of_another_encoding(jobs: Jobs) -> None:
    (jobs.folder / "hosts").write_bytes("localhost\nk\u00f6ln\n".encode("latin-1"))
    done = jobs.run("-np", "1", "--hostfile", "hosts", "s.py")
    assert done.returncode == 2
    assert done.stderr.endswith("--hostfile hosts, line 2: is not UTF-8 text\n")


def test_hostfile_that_begins_with_a_byte_order_mark(jobs: Jobs) -> None:
    (jobs.folder / "hosts").write_text("localhost slots=1\n", encoding="utf-8-sig")
    done = jobs.run("-np", "1", "--hostfile", "hosts", jobs.script("print('here')"))
    assert done.stdout == "[0]: here\n"


@pytest.mark.parametrize("host", ["::1", "[::1]:1", "[0:0::1]"])
def test_this_host_by_ipv6(jobs: Jobs, host: str) -> None:
    assert jobs.run("-np", "1", "-H", host, jobs.script("print('here')")).stdout == "[0]: here\n"


def test_a_current_folder_that_is_gone(jobs: Jobs) -> None:
    script = jobs.script("pass")
    gone = jobs.folder / "gone"
    gone.mkdir()
    run = ["sh", "-c", f'rmdir {gone}; exec "$@"', "sh", *jobs.rdmarun, "-np", "1", script]
    done = subprocess.run(
        run, cwd=gone, env=jobs.env({}), capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 1
    assert "rdmarun: the current folder has been removed; change to another\n" in done.stderr


@pytest.mark.parametrize("options", ["size=4k", "ro"])
def test_no_room_in_dev_shm(jobs: Jobs, options: str) -> None:
    """MPI needs room there. The mount is in a namespace of its own, which only root can make."""
    mount = f"mount -t tmpfs -o {options} tmpfs /dev/shm"
    inside = ["sh", "-c", f'{mount} && exec "$@"', "sh", *jobs.rdmarun, *TWO_HOSTS, jobs.script("")]
    done = subprocess.run(
        [*in_namespace("mount"), *inside],
        env=jobs.env({}),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 1
    assert ": /dev/shm on " in done.stderr and "remount" in done.stderr
    assert "SIGBUS" not in done.stderr


def test_the_most_ranks_are_those_of_the_engine() -> None:
    limits = Path(__file__).parents[2] / "csrc/base/limits.h"
    match = re.search(r"kMaxWorld =\s+(\d+);", limits.read_text())
    assert match is not None and int(match[1]) == MOST_RANKS


def test_missing_module(jobs: Jobs) -> None:
    done = jobs.run("-np", "1", "-m", "no_such_module")
    assert done.returncode == 1
    assert "No module named no_such_module" in done.stderr


def test_output_folder_that_cannot_be_made(jobs: Jobs) -> None:
    (jobs.folder / "taken").write_text("")
    done = jobs.run_script("pass", "-np", "2", "--output-filename", "taken")
    assert done.returncode == 1
    assert "cannot start rank 0" in done.stderr and "taken" in done.stderr


def test_version_and_help(jobs: Jobs) -> None:
    assert jobs.run("--version").stdout.startswith("rdmarun (rdmacoll) ")
    assert "--start-timeout" in jobs.run("--help").stdout
