"""Unusual names, arguments and variables reach the ranks unchanged.

Floor: tests.
"""

import os
import shlex
import subprocess

import pytest
from job_runner import LIMIT_S, Jobs

SHOWS = b"""
import os, sys
out = sys.stdout.buffer
for word in sys.argv:
    out.write(os.fsencode(word).hex().encode() + b" ")
out.write(os.environb.get(b"ODD", b"").hex().encode())
"""
NAMES = [b"a b", b"a\nb", b"\xff\xfe", "ü→漢".encode(), b"-dash", b"$(x);'\"\\", b"*", b"x" * 200]


def run(jobs: Jobs, *args: bytes) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [*jobs.rdmarun, b"-np", b"1", *args],
        cwd=jobs.folder,
        env=jobs.env({}),
        capture_output=True,
        timeout=LIMIT_S,
    )


def words(done: "subprocess.CompletedProcess[bytes]") -> list[bytes]:
    assert done.returncode == 0, done.stderr
    return [bytes.fromhex(word.decode()) for word in done.stdout[len("[0]: ") :].split(b" ")]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_script_and_folder(jobs: Jobs, name: bytes) -> None:
    """The script, before its .py, its folder, an argument and a variable have the name."""
    folder = os.path.join(os.fsencode(jobs.folder), name)
    os.mkdir(folder)
    script = os.path.join(folder, name + b".py")
    with open(script, "wb") as file:
        file.write(SHOWS)
    done = run(jobs, b"-x", b"ODD=" + name, script, name, b"", b"last")
    assert words(done) == [script, name, b"", b"last", name]


@pytest.mark.parametrize("name", [b"a\nb", b"\xff\xfe"], ids=repr)
def test_a_script_that_is_not_there(jobs: Jobs, name: bytes) -> None:
    done = run(jobs, name)
    assert done.returncode == 2
    assert b"there is no such script" in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "setting", [b"ODD=", b"ODD= ", b"ODD=a=b", b"ODD=\xff", b"ODD=a\nb", b"ODD=" + b"x" * 100_000]
)
def test_values(jobs: Jobs, setting: bytes) -> None:
    (jobs.folder / "script.py").write_bytes(SHOWS)
    done = run(jobs, b"-x", setting, b"script.py")
    assert words(done)[-1] == setting.partition(b"=")[2]


def test_what_the_launcher_sets_is_not_the_users(jobs: Jobs) -> None:
    (jobs.folder / "script.py").write_bytes(SHOWS.replace(b"ODD", b"RANK"))
    assert words(run(jobs, b"-x", b"RANK=7", b"script.py"))[-1] == b"0"


def test_output_folder(jobs: Jobs) -> None:
    (jobs.folder / "script.py").write_bytes(SHOWS)
    assert run(jobs, b"--output-filename", b"o \n\xff", b"script.py").returncode == 0
    path = os.path.join(os.fsencode(jobs.folder), b"o \n\xff", b"rank.0", b"stdout")
    assert os.path.getsize(path) > 0


def test_standard_input_is_not_read(jobs: Jobs) -> None:
    """What was written to rdmarun is left for the next command."""
    jobs.script("import sys; print(repr(sys.stdin.read()))")
    line = f"{shlex.join(jobs.rdmarun)} -np 1 script.py; cat"
    done = subprocess.run(
        ["bash", "-c", line],
        input=b"for the next\n",
        cwd=jobs.folder,
        env=jobs.env({}),
        capture_output=True,
        timeout=LIMIT_S,
    )
    assert done.stdout == b"[0]: ''\nfor the next\n"
