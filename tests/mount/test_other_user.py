"""A mount of a user who is not root, of a job whose servers are root's. That user has the files,
and the kernel lets no other one in.

Floor: tests.
"""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from as_root import only_as_root
from by_hand import Process
from fuse import check_fuse
from job_runner import wait_for
from mounted_job import Mounted, job_of_its_own
from test_mount import fails_with

from rdmacoll.base.mount_folder import is_mount_of_ours

NOBODY = pwd.getpwnam("nobody")
# To read alone, as Python may lie in a folder that is root's. It has no more to say in a mount.
READS = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
MOUNT = ["-m", "rdmacoll", "mount"]


def as_user(uid: int, gid: int, *more: str) -> list[str]:
    return ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *more]


AS_NOBODY = as_user(NOBODY.pw_uid, NOBODY.pw_gid)
AS_ANOTHER = as_user(NOBODY.pw_uid - 1, NOBODY.pw_gid - 1)


def check_setpriv() -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv: nothing can be run as another user here")
    command = [*AS_NOBODY, *READS, sys.executable, "-c", "import rdmacoll._fuse"]
    tried = subprocess.run(command, cwd="/", capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"rdmacoll cannot be run as nobody here: {tried.stderr}")


@contextmanager
def fuse_for_all_users() -> Iterator[None]:
    """Opens /dev/fuse to all users, as udev does. Without udev it is open to root alone."""
    mode = stat.S_IMODE(os.stat("/dev/fuse").st_mode)
    if mode & 0o666 == 0o666:
        yield
        return
    try:
        os.chmod("/dev/fuse", 0o666)
    except OSError as error:
        pytest.skip(f"other users may not open /dev/fuse here, and that cannot be changed: {error}")
    try:
        yield
    finally:
        os.chmod("/dev/fuse", mode)


@pytest.fixture(scope="module")
def job() -> Iterator[Mounted]:
    """In a folder that all users can reach."""
    only_as_root()
    check_fuse()
    check_setpriv()
    with fuse_for_all_users(), tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with job_of_its_own(folder) as mounted:
            yield mounted


def new_folder(job: Mounted, owner: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"of {owner} ", dir=job.jobs.folder))
    folder.chmod(0o755)
    os.chown(folder, owner, owner)
    return folder


def start(job: Mounted, folder: Path) -> Process:
    command = [*AS_NOBODY, *READS, job.jobs.python, *MOUNT, str(folder), "--store", job.store]
    return Process(job.jobs, "of nobody", command)


def run(user: list[str], script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [*user, "sh", "-ec", script]
    env = {**os.environ, "AT": str(folder)}
    return subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, timeout=60)


def test_a_user_has_the_files_and_no_other_one(job: Mounted) -> None:
    data = os.urandom(20_000_000)
    (job.folder / "of root").write_bytes(data)
    folder = new_folder(job, NOBODY.pw_uid)
    daemon = start(job, folder)
    daemon.wait_for_word("has the files")
    script = """
        cat "$AT/of root" "$AT/.mmap/of root" > "$AT/twice"
        mkdir "$AT/below"; echo text > "$AT/below/file"; chmod 600 "$AT/below/file"
        stat -c '%u' "$AT" "$AT/of root" "$AT/below/file"
        """
    done = run(AS_NOBODY, script, folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [str(NOBODY.pw_uid)] * 3
    # Root has a mount of its own, and sees there what nobody has written.
    assert (job.folder / "twice").read_bytes() == data * 2
    assert (job.folder / "below" / "file").read_text() == "text\n"
    assert (job.folder / "below" / "file").stat().st_uid == os.getuid()

    with fails_with(errno.EACCES):
        os.listdir(folder)
    with fails_with(errno.EACCES):
        (folder / "below" / "file").read_text()
    with fails_with(errno.EACCES):
        (folder / "new").touch()
    refused = run(AS_ANOTHER, 'ls "$AT"', folder)
    assert refused.returncode != 0 and "Permission denied" in refused.stderr, refused
    status, said = job.start(folder).end()
    assert status == 1 and f"{folder} cannot be read (Permission denied)" in said, said

    daemon.process.terminate()
    assert daemon.end()[0] == 0
    assert not is_mount_of_ours(str(folder)) and os.listdir(folder) == []


def test_it_is_unmounted_when_its_process_is_killed(job: Mounted) -> None:
    folder = new_folder(job, NOBODY.pw_uid)
    daemon = start(job, folder)
    daemon.wait_for_word("has the files")
    assert is_mount_of_ours(str(folder))
    assert run(AS_NOBODY, 'echo kept > "$AT/file"', folder).returncode == 0
    daemon.process.kill()
    wait_for(lambda: not is_mount_of_ours(str(folder)), "the end of the mount")
    assert os.listdir(folder) == []
    assert (job.folder / "file").read_text() == "kept\n"
    daemon.end()


def test_a_folder_of_another_user_is_refused(job: Mounted) -> None:
    folder = new_folder(job, os.getuid())
    status, said = start(job, folder).end()
    assert status == 1 and "user has no write access to mountpoint" in said, said
    assert "Traceback" not in said
    assert not is_mount_of_ours(str(folder))
