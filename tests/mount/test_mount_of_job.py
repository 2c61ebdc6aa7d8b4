"""rdmarun --mount: the files of a job are in a folder of each host while the job runs, whoever is
lost, and the folder is unmounted afterwards.

Floor: tests.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from fuse import check_fuse
from job_runner import LIMIT_S, ONE_HOST, TWO_HOSTS, Jobs, both, clean_jobs, wait_for

from rdmacoll.base.mount_folder import is_mount_of_ours

ONE = ["-np", "1", "--servers", "1"]
STAYS = """
import os, sys, time
from pathlib import Path
folder = Path(os.environ["RDMACOLL_MOUNT"])
assert os.path.ismount(folder)
(folder / "file").write_text("text")
Path("up." + os.environ["RANK"]).touch()
time.sleep(1000)
"""


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    check_fuse()
    with clean_jobs(tmp_path) as jobs:
        yield jobs
    assert not any(is_mount_of_ours(str(one)) for one in tmp_path.iterdir())


def start(jobs: Jobs, *options: str, text: str = STAYS) -> subprocess.Popen[str]:
    """Returns once rank 0 is up."""
    process = jobs.start(*options, jobs.script(text))
    wait_for(lambda: process.poll() is not None or bool(jobs.files("up.0")), "the ranks")
    return process


def mounting(jobs: Jobs) -> list[psutil.Process]:
    """The processes of mounts; those of two agents by their age."""
    found = [one for one in jobs.processes() if "mount" in one.cmdline()]
    return sorted(found, key=lambda one: one.create_time())


def end(process: subprocess.Popen[str], status: int = 128 + signal.SIGINT) -> str:
    """What rdmarun has said."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == status, said
    return said


@both
def test_ranks_share_files_from_their_first_line_on(jobs: Jobs, options: list[str]) -> None:
    text = """
        import os, time
        from pathlib import Path
        folder, rank = Path(os.environ["RDMACOLL_MOUNT"]), int(os.environ["RANK"])
        assert folder == Path.cwd() / "not/there", folder
        assert os.path.ismount(folder)
        (folder / f"of {rank}").write_text("text")
        until = time.monotonic() + 60
        while not (folder / f"of {1 - rank}").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        print(sorted(os.listdir(folder)))
    """
    options = [*options, "--servers", "2", "--mount", "not/there", "--output-filename", "out"]
    done = jobs.run(*options, jobs.script(text))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[{rank}]: ['of 0', 'of 1']" for rank in (0, 1)]
    assert (jobs.folder / "out/mount/stderr").exists()
    left = jobs.folder / "not/there"
    assert os.listdir(left) == [] and not os.path.ismount(left)


@pytest.mark.parametrize("role", ["rdmarun", "subreaper", "agent"])
def test_the_folder_is_unmounted_whoever_is_killed(jobs: Jobs, role: str) -> None:
    process = start(jobs, *ONE, "--mount", "mounted")
    victim = psutil.Process(process.pid)
    for _ in range(["rdmarun", "subreaper", "agent"].index(role)):
        (victim,) = victim.children()
    victim.kill()
    process.communicate(timeout=LIMIT_S)
    wait_for(lambda: not is_mount_of_ours(str(jobs.folder / "mounted")), "the end of the mount")
    assert os.listdir(jobs.folder / "mounted") == []


def test_a_lost_mount_is_made_again(jobs: Jobs) -> None:
    process = start(jobs, *ONE, "--mount", "mounted")
    folder = jobs.folder / "mounted"
    (lost,) = mounting(jobs)
    lost.kill()
    wait_for(lambda: not is_mount_of_ours(str(folder)), "the end of the mount")
    (folder / "late").write_text("not in the job's files")
    wait_for(lambda: os.path.ismount(folder), "the next one")
    assert (folder / "file").read_text() == "text"
    assert os.listdir(folder) == ["file"]
    said = end(process)
    assert f"rdmarun: the mount on localhost (pid {lost.pid}) was killed by SIGKILL" in said
    assert said.count("rdmarun: starting the mount again\n") == 1
    assert f"[mount]: rdmacoll mount: while {folder} was not mounted, late came there" in said
    assert (folder / "late").read_text() == "not in the job's files"


def test_two_agents_with_one_folder(jobs: Jobs) -> None:
    process = start(jobs, *TWO_HOSTS, "--servers", "1", "--mount", "mounted")
    wait_for(lambda: bool(jobs.files("up.1")), "the other rank")
    folder = jobs.folder / "mounted"
    assert Path("/proc/self/mounts").read_text().count(f" {folder} ") == 1
    for lost in mounting(jobs):  # one of them has the mount
        lost.kill()
        lost.wait(LIMIT_S)
        wait_for(lambda: len(mounting(jobs)) == 2, "the next one")
        wait_for(lambda: os.path.ismount(folder) and (folder / "file").exists(), "the files")
    end(process)
    assert not os.path.ismount(folder)


def refused(jobs: Jobs, folder: str, why: str) -> str:
    done = jobs.run(*ONE, "--mount", folder, jobs.script("open('started', 'w')"))
    assert done.returncode == 1
    assert why in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not jobs.files("started")
    return done.stderr


def test_a_folder_that_cannot_be_one(jobs: Jobs) -> None:
    (jobs.folder / "file").touch()
    (jobs.folder / "full").mkdir()
    (jobs.folder / "full/file").touch()
    for folder, why in (
        ("file", f"{jobs.folder}/file cannot be read (Not a directory)"),
        ("full", "has 1 entries, which would be hidden: empty it"),
        ("/proc", "/proc is a mount already"),
        ("file/inside", "Not a directory"),
    ):
        said = refused(jobs, folder, why)
        assert "rdmarun: host localhost: cannot start the mount: " in said
        assert "[mount]" not in said and "[server" not in said


def test_two_jobs_and_a_job_in_a_job(jobs: Jobs) -> None:
    inner = jobs.script("import os; print(os.environ.get('RDMACOLL_MOUNT'))", "inner.py")
    text = f"""
import os, subprocess, sys
from pathlib import Path
folder = Path(os.environ["RDMACOLL_MOUNT"])
(folder / "of the outer").touch()
rdmarun = [sys.executable, "-m", "rdmacoll.launcher", "-np", "1", "--servers", "1"]
def run(*options):
    return subprocess.run([*rdmarun, *options, {inner!r}], capture_output=True, text=True)
assert run().stdout == "[0]: None\\n"
done = run("--mount", "inner")
assert done.stdout == f"[0]: {{Path.cwd()}}/inner\\n", done
done = run("--mount", str(folder))
assert "is a mount of another job: give another folder" in done.stderr, done
assert (done.returncode, done.stdout) == (1, "")
assert os.listdir(folder) == ["of the outer"]
"""
    done = jobs.run(*ONE, "--mount", "outer", jobs.script(text))
    assert done.returncode == 0, done.stderr


def test_it_is_there_for_each_start_of_the_ranks(jobs: Jobs) -> None:
    text = """
import os, sys
from pathlib import Path
folder = Path(os.environ["RDMACOLL_MOUNT"])
print(os.listdir(folder), "json" in sys.modules)
(folder / "file").touch()
sys.exit(os.environ["TORCHELASTIC_RESTART_COUNT"] == "0")
"""
    options = [*ONE, "--mount", "mounted", "--max-restarts", "1", "--preload", "json"]
    done = jobs.run(*options, jobs.script(text))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0]: [] True\n" * 2


def test_a_rank_that_is_started_again_waits_for_a_lost_mount(jobs: Jobs) -> None:
    text = """
import os, signal, time
from pathlib import Path
folder = Path(os.environ["RDMACOLL_MOUNT"])
assert os.path.ismount(folder)
if os.environ["RANK"] == "0" or not os.path.exists("up.0"):
    (folder / ("of " + os.environ["RANK"])).touch()
    if os.environ["RANK"] == "1":
        while not (folder / "of 0").exists():
            time.sleep(0.01)
        Path("up.0").touch()
        while os.path.ismount(folder):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    until = time.monotonic() + 60
    while not os.path.exists("came again"):
        assert time.monotonic() < until
        time.sleep(0.01)
else:
    assert sorted(os.listdir(folder)) == ["of 0", "of 1"]
    Path("came again").touch()
"""
    options = [*ONE_HOST, "--servers", "1", "--mount", "mounted"]
    process = start(jobs, *options, "--min-np", "1", "--elastic", "--max-restarts", "1", text=text)
    mounting(jobs)[0].kill()
    _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, said
    assert "starting the mount again" in said and "starting rank 1 again" in said
