"""Jobs that need an MPI, where it is missing, unknown, or does not start the agents. Jobs that need
none. And --check-build.

Floor: tests.
"""

import os
import re
import sys
from pathlib import Path

import pytest
import rdmacoll.launcher
from job_runner import Jobs

import rdmacoll

TWO_AGENTS = ["-np", "2", "-H", "localhost:1,localhost:1"]
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
        (HYDRA + "exit 7", "mpiexec (host localhost) ended (status 7) before the agents were up"),
    ],
)
def test_missing_or_broken_mpi(jobs: Jobs, mpiexec: str | None, says: str) -> None:
    env = bare_python(jobs, mpiexec)
    done = jobs.run(*TWO_AGENTS, jobs.script("pass"), **env)
    assert done.returncode != 0
    assert says in done.stderr
    assert done.stdout == ""


def test_one_host_needs_no_mpi(jobs: Jobs) -> None:
    """No process of the job runs mpiexec or has loaded a library of MPI."""
    env = bare_python(jobs, "exit 3")
    text = """
        import os
        from pathlib import Path
        pid, loaded = os.getpid(), ""
        while pid != int(os.environ["STOP_AT"]):  # the rank, its agent, the subreaper, rdmarun
            loaded += Path(f"/proc/{pid}/maps").read_text()
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        print("libmpi" in loaded)
    """
    done = jobs.run("-np", "2", "--verbose", jobs.script(text), STOP_AT=str(os.getpid()), **env)
    assert done.returncode == 0, done
    assert sorted(done.stdout.splitlines()) == ["[0]: False", "[1]: False"], done
    assert "rdmarun: without mpiexec: " in done.stderr


def test_agents_that_never_come_up(jobs: Jobs) -> None:
    env = bare_python(jobs, HYDRA + "exec /bin/sleep 1000")
    done = jobs.run(*TWO_AGENTS, "--start-timeout", "0.5", jobs.script("pass"), **env)
    assert done.returncode == 128 + 15
    assert (
        "the agents (localhost, localhost) are not up after 0.5 s (--start-timeout)" in done.stderr
    )


def items(output: str) -> dict[str, tuple[bool, str]]:
    """Name -> whether it is there, and what is said of it."""
    found = re.findall(r"^    \[([X ])\] ([\w ]+)(?:: (.*))?$", output, re.M)
    return {name: (mark == "X", detail) for mark, name, detail in found}


def test_check_build(jobs: Jobs) -> None:
    done = jobs.run("--check-build")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"rdmacoll v{rdmacoll.__version__}:\n\nAvailable Frameworks:\n")
    found = items(done.stdout)
    assert list(found)[:5] == ["PyTorch", "MPI", "mpi4py", "shm", "verbs"]
    assert "built for 2." in found["PyTorch"][1]
    assert "mpiexec" in found["MPI"][1]
    assert " with " in found["mpi4py"][1]
    assert found["shm"] == (True, "")
    assert found["verbs"] == (True, "")
    assert found["RDMA device of LOCAL_RANK 0"][1]


def test_check_build_without_mpi(jobs: Jobs) -> None:
    done = jobs.run("--check-build", **bare_python(jobs, None))
    assert done.returncode == 0
    there, why = items(done.stdout)["MPI"]
    assert not there
    assert why.startswith("no mpiexec")
    assert why.endswith("jobs on one host do without, jobs on several cannot start")


def test_check_build_with_a_broken_extension(jobs: Jobs) -> None:
    site = package_as_folder(jobs.folder / "site")
    (compiled,) = Path(site).glob("rdmacoll/_C.*.so")
    compiled.unlink()
    compiled.touch()
    done = jobs.run("--check-build", PYTHONPATH=site)
    assert done.returncode == 1
    found = items(done.stdout)
    assert not found["PyTorch"][0]
    assert "shm" not in found  # what is compiled in is not known
    assert found["PyTorch"][1].startswith("rdmacoll's compiled module does not load into torch")
