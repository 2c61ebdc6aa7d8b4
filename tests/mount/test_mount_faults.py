"""Who is lost, stopped or full: the next command on the mount answers, and nothing that was closed
is lost.

Floor: tests.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from job_runner import wait_for
from mounted_job import Mounted, job_of_its_own
from test_mount import fails_with

MIB = 1 << 20


def listed(folder: Path) -> str:
    """By a command of its own: one that hangs is killed."""
    command = [sys.executable, "-c", f"import os; print(os.listdir({str(folder)!r}))"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return ended.stdout or ended.stderr


def test_a_lost_server_is_not_seen(own: Mounted) -> None:
    kept = os.urandom(5 * MIB)
    (own.folder / "kept").write_bytes(kept)
    with (own.folder / "written").open("wb", buffering=0) as file:
        file.write(kept[:MIB])
        own.kill(1)
        file.write(kept[MIB:])
    assert (own.folder / "written").read_bytes() == kept
    assert (own.folder / "kept").read_bytes() == kept
    (own.folder / "later").write_bytes(kept)
    assert (own.folder / "later").read_bytes() == kept


def test_without_servers_there_is_an_error_within_the_deadline(own: Mounted) -> None:
    folder, _ = own.mount("other", "--timeout", "3")
    (folder / "file").write_bytes(b"x" * MIB)
    for server in own.servers:
        server.process.send_signal(signal.SIGSTOP)
    with fails_with(errno.EIO):
        (folder / "more").write_bytes(b"y" * MIB)
    assert b"in time" in os.getxattr(folder / "more", "user.rdmacoll.error")
    for server in own.servers:
        server.process.send_signal(signal.SIGCONT)
    (folder / "more").write_bytes(b"z" * MIB)
    assert (folder / "more").read_bytes() == b"z" * MIB
    assert os.listxattr(folder / "more") == ["user.rdmacoll.version"]
    for number in (0, 1):
        own.kill(number)
    with fails_with(errno.EIO):
        (folder / "file").read_bytes()


def test_a_daemon_that_is_killed_leaves_no_mount(own: Mounted) -> None:
    (own.folder / "file").write_bytes(b"kept")
    reader = os.open(own.folder / "file", os.O_RDONLY)
    own.daemon.process.kill()
    with pytest.raises(OSError):
        os.read(reader, 10)
    with pytest.raises(OSError):
        os.close(reader)
    wait_for(lambda: not os.path.ismount(own.folder), "the end of the mount")
    assert listed(own.folder) == "[]\n"
    again = own.start(own.folder)
    again.wait_for_word("has the files")
    assert (own.folder / "file").read_bytes() == b"kept"


def test_a_daemon_that_is_stopped_goes_on(own: Mounted) -> None:
    own.daemon.process.send_signal(signal.SIGSTOP)
    command = [sys.executable, "-c", f"open({str(own.folder / 'file')!r}, 'w').write('text')"]
    writer = subprocess.Popen(command)
    time.sleep(1)
    assert writer.poll() is None
    own.daemon.process.send_signal(signal.SIGCONT)
    assert writer.wait(60) == 0
    assert (own.folder / "file").read_text() == "text"
    # One that is not to be waited for can be killed.
    own.daemon.process.send_signal(signal.SIGSTOP)
    writer = subprocess.Popen(command)
    time.sleep(0.5)
    writer.kill()
    assert writer.wait(60) == -signal.SIGKILL
    own.daemon.process.send_signal(signal.SIGCONT)
    assert listed(own.folder) == "['file']\n"


@pytest.mark.nightly
def test_a_daemon_that_is_taken_for_dead_goes_on(own: Mounted) -> None:
    """Servers free what one holds that shows no sign of life for 10 s."""
    file = own.folder / "file"
    file.write_bytes(b"before")
    reader = os.open(file, os.O_RDONLY)
    other, _ = own.mount("other")
    own.daemon.process.send_signal(signal.SIGSTOP)
    (other / "file").write_bytes(b"after")
    time.sleep(20)
    own.daemon.process.send_signal(signal.SIGCONT)
    with fails_with(errno.ESTALE):
        os.read(reader, 10)
    os.close(reader)
    assert file.read_bytes() == b"after"
    for number in range(20):
        (own.folder / f"file {number}").write_bytes(os.urandom(100_000))


def test_what_is_open_is_stored_when_the_mount_is_told_to_end(own: Mounted) -> None:
    other, _ = own.mount("other")
    file = os.open(own.folder / "file", os.O_WRONLY | os.O_CREAT)
    os.write(file, b"written, not closed")
    own.daemon.process.terminate()
    assert own.daemon.end()[0] == 0
    with fails_with(errno.ENOTCONN):
        os.close(file)
    assert (other / "file").read_text() == "written, not closed"


def test_full_servers_are_an_error_and_later_there_is_room(tmp_path: Path) -> None:
    with job_of_its_own(tmp_path, "64M") as full:
        (full.folder / "small").write_bytes(b"kept")
        large = full.folder / "large"
        # One copy of it, which takes twice its size, is more than both servers have room for. They
        # may take a file that they have room for once: it has no backup then.
        with fails_with(errno.ENOSPC):
            large.write_bytes(b"x" * (80 * MIB))
        assert (full.folder / "small").read_bytes() == b"kept"
        large.unlink()
        fits = os.urandom(8 * MIB)
        (full.folder / "fits").write_bytes(fits)
        assert (full.folder / "fits").read_bytes() == fits


OPENS = """
import os, sys
known = os.open(sys.argv[1], os.O_PATH)  # so that the kernel need not look for it again
print(flush=True)
input()
os.open(f"/proc/self/fd/{known}", os.O_RDONLY)
"""


def test_who_is_killed_while_it_opens_a_file_holds_nothing(own: Mounted) -> None:
    file = own.folder / "file"
    file.write_bytes(b"x" * MIB)
    command = [sys.executable, "-c", OPENS, str(file)]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    program.stdout.readline()
    own.daemon.process.send_signal(signal.SIGSTOP)
    with suppress(subprocess.TimeoutExpired):
        program.communicate("now\n", timeout=1)
    program.kill()
    # The daemon may have taken its request, and stopped then. The kernel keeps the program in that
    # case until it is answered.
    with suppress(subprocess.TimeoutExpired):
        program.communicate(timeout=1)
    own.daemon.process.send_signal(signal.SIGCONT)
    program.communicate(timeout=60)
    file.unlink()
    wait_for(lambda: own.tables_at(0) == 0, "that the file is freed")


def test_a_size_that_cannot_be_set_changes_nothing(own: Mounted) -> None:
    folder, _ = own.mount("other", "--timeout", "2")
    file = folder / "file"
    file.write_bytes(b"x" * MIB)
    for server in own.servers:
        server.process.send_signal(signal.SIGSTOP)
    with fails_with(errno.EIO):
        os.truncate(file, 1000)
    for server in own.servers:
        server.process.send_signal(signal.SIGCONT)
    assert file.read_bytes() == b"x" * MIB
    os.truncate(file, 1000)
    file.write_bytes(file.read_bytes() + b"y")
    assert file.read_bytes() == b"x" * 1000 + b"y"
