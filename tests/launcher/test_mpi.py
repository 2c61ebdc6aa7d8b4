"""An MPI that is missing, unknown, or does not start what it is told to; and --check-build.

Floor: tests.
"""

import os
import sys
from pathlib import Path

import pytest
import rdmacoll.launcher
from conftest import Jobs

import rdmacoll

HYDRA = 'if [ "$1" = --version ]; then echo HYDRA; exit; fi\n'


def bare_python(jobs: Jobs, mpiexec: str | None) -> dict[str, str]:
    """Has the jobs run by a python beside which is no mpiexec, or this one; the environment."""
    folder = jobs.folder / "bin"
    folder.mkdir()
    jobs.python = str(folder / "python")
    Path(jobs.python).symlink_to(sys.executable)
    if mpiexec is not None:
        path = folder / "mpiexec"
        path.write_text(f"#!/bin/sh\n{mpiexec}")
        path.chmod(0o755)
    return {
        "PATH": "/nonexistent",
        "PYTHONPATH": os.pathsep.join([package_as_folder(jobs.folder / "site"), *sys.path]),
    }


def package_as_folder(site: Path) -> str:
    """A folder to import rdmacoll from: an editable install is found by its own python only."""
    package, launcher = Path(rdmacoll.__file__).parent, Path(rdmacoll.launcher.__file__).parent
    view = site / "rdmacoll"
    view.mkdir(parents=True)
    for entry in {*package.iterdir(), launcher}:
        (view / entry.name).symlink_to(entry)
    return str(site)


@pytest.mark.parametrize(
    ("mpiexec", "says"),
    [
        (None, "no mpiexec beside"),
        (None, "`pip install mpich` brings one"),
        ("echo Frob MPI 1.0", "of no MPI that rdmarun knows (MPICH, Open MPI, Intel MPI)"),
        ("exit 3", "its --version says: nothing (status 3)"),
        (HYDRA + "exit 7", "mpiexec ended (status 7) before its agents were up"),
    ],
)
def test_missing_or_broken_mpi(jobs: Jobs, mpiexec: str | None, says: str) -> None:
    env = bare_python(jobs, mpiexec)
    done = jobs.run("-np", "1", jobs.script("pass"), **env)
    assert done.returncode != 0
    assert says in done.stderr
    assert done.stdout == ""


def test_agents_that_never_come_up(jobs: Jobs) -> None:
    env = bare_python(jobs, HYDRA + "exec /bin/sleep 1000")
    done = jobs.run("-np", "1", "--start-timeout", "0.5", jobs.script("pass"), **env)
    assert done.returncode == 128 + 15
    assert "the agents (localhost) are not up after 0.5 s (--start-timeout)" in done.stderr


def test_check_build(jobs: Jobs) -> None:
    done = jobs.run("--check-build")
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert rows["torch"][0].isdigit()
    assert "mpiexec" in rows["MPI"]
    assert " with " in rows["mpi4py"]
    assert "rdmacoll" in rows
    assert (done.returncode == 0) == ("does not load" not in rows["rdmacoll"])


def test_check_build_without_mpi(jobs: Jobs) -> None:
    done = jobs.run("--check-build", **bare_python(jobs, None))
    assert done.returncode == 1
    assert "missing: no mpiexec" in done.stdout
