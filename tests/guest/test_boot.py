"""How a guest is followed and ended, with a script in QEMU's place.

Floor: tests.
"""

import os
import time
from pathlib import Path

import pytest

from guest import GuestError, boot, initrd, kernel, qemu, ssh_key
from guest.boot import Settings, Timeout

LIMIT_S = 30


class FakeQemu:
    """Does what a test says, with $mine as the guest's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "qemu"

    def does(self, lines: str) -> None:
        find_folders = (
            f"echo $$ >>{self.folder}/pids\n"
            "while [ $1 != -append ]; do shift; done\n"
            'eval "$(grep -o "share=.*" <<<"$2" | tr " " ";")"\n'
            "run=$share/$run mine=$run/$host\n"
        )
        self.program.write_text(f"#!/bin/bash\n{find_folders}{lines}\n")
        self.program.chmod(0o755)

    def all_gone(self) -> bool:
        pids = (self.folder / "pids").read_text().split()
        return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeQemu:
    made = FakeQemu(tmp_path)
    (tmp_path / "share").mkdir()
    monkeypatch.setattr(qemu, "PROGRAM", str(made.program))
    monkeypatch.setattr(boot, "SHARE", tmp_path / "share")
    monkeypatch.setattr(kernel, "ensure", lambda: None)
    monkeypatch.setattr(initrd, "build", lambda: b"")
    monkeypatch.setattr(ssh_key, "make", lambda path: None)
    return made


STATUS = "echo 3 >$mine/part; mv $mine/part $mine/status; exec sleep 1000"


def test_output_and_status_are_the_commands(
    fake: FakeQemu, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    fake.does("cat $run/command >$mine/output; printf '\\xff' >>$mine/output; " + STATUS)
    assert boot.run(Settings(), "echo hello") == 3
    assert capfdbinary.readouterr().out == b"echo hello\n\xff"
    assert fake.all_gone()
    assert list((fake.folder / "share").iterdir()) == []


def test_a_command_that_hangs(fake: FakeQemu) -> None:
    fake.does(": >$mine/ready; echo last words >$mine/console; exec sleep 1000")
    with pytest.raises(Timeout, match="(?s)did not end within 0.2 s.*last words"):
        boot.run(Settings(timeout_s=0.2), "sleep 1000")
    assert fake.all_gone()


def test_a_guest_that_does_not_boot(fake: FakeQemu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "BOOT_LIMIT_S", 0.5)
    fake.does("echo stuck on $host >$mine/console; exec sleep 1000")
    with pytest.raises(GuestError, match="(?s)host1, host2 did not boot within 0.5 s.*stuck on 2"):
        boot.run(Settings(guests=2), "true")
    assert fake.all_gone()


def test_a_guest_that_ends_by_itself(fake: FakeQemu) -> None:
    fake.does("[ $host = 2 ] || exec sleep 1000; echo no such machine >&2; exit 1")
    with pytest.raises(GuestError, match="(?s)host2 ended by itself.*no such machine"):
        boot.run(Settings(guests=2), "true")
    assert fake.all_gone()


def test_guests_end_with_the_process_that_started_them(fake: FakeQemu) -> None:
    fake.does(": >$mine/ready; exec sleep 1000")
    starter = os.fork()
    if starter == 0:
        boot.run(Settings(guests=2), "true")
        os._exit(0)
    deadline = time.monotonic() + LIMIT_S
    while len(list((fake.folder / "share").glob("*/*/ready"))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(starter, 9)
    os.waitpid(starter, 0)
    while not fake.all_gone():
        assert time.monotonic() < deadline
        time.sleep(0.01)
