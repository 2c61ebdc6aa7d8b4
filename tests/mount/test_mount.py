"""What programs see of the job's files in a folder: as of any file system, and what is seen when.

Floor: tests.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import numpy as np
import pytest
import torch
from mounted_job import Mounted

OPERATIONS = Path(__file__).with_name("random_operations.py")
# Seeds, and how many operations of each.
SHORT = [(seed, 400) for seed in range(6)]
LONG = [(seed, 20_000) for seed in range(100, 150)]  # a million


def fails_with(number: int) -> pytest.RaisesExc[OSError]:
    return pytest.RaisesExc(OSError, check=lambda error: error.errno == number)


def check_operations(mounted: Mounted, seed: int, count: int) -> None:
    inside = mounted.folder / f"of seed {seed}"
    inside.mkdir()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        command = [sys.executable, str(OPERATIONS), str(inside), other, str(seed), str(count)]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert ended.returncode == 0, ended.stdout
    shutil.rmtree(inside)


def test_random_operations_are_as_those_of_another_file_system(mounted: Mounted) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: check_operations(mounted, *one), SHORT))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_a_million_random_operations(mounted: Mounted) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: check_operations(mounted, *one), LONG))


def test_what_is_written_is_seen_when_it_is_closed_or_synchronised(mounted: Mounted) -> None:
    file = mounted.folder / "file"
    file.write_text("first")
    with file.open("r+") as writer, file.open() as reader:
        writer.write("second one")
        writer.flush()
        assert os.fstat(writer.fileno()).st_size == 10
        assert file.read_text() == "first"
        assert reader.read() == "first"
        os.fsync(writer.fileno())
        assert file.read_text() == "second one"
        writer.write(" and more")
    assert file.read_text() == "second one and more"


def test_who_has_found_a_version_sees_no_draft_of_it(mounted: Mounted) -> None:
    path = mounted.folder / "found"
    path.write_bytes(b"whole")
    found = os.open(path, os.O_PATH)  # as the kernel does, before it asks to open it
    try:
        with path.open("wb") as other:
            with fails_with(errno.ESTALE):  # where there is a name to look for it looks again
                os.open(f"/proc/self/fd/{found}", os.O_RDONLY)
            assert path.read_bytes() == b"whole"
            other.write(b"whole, too")
        assert path.read_bytes() == b"whole, too"
    finally:
        os.close(found)


def test_who_reads_keeps_to_one_version(mounted: Mounted) -> None:
    file = mounted.folder / "file"
    before, after = os.urandom(3 << 20), os.urandom(2 << 20)
    file.write_bytes(before)
    with file.open("rb", buffering=0) as reader:
        assert reader.read(1000) == before[:1000]
        file.write_bytes(after)
        assert os.fstat(reader.fileno()).st_size == len(before)
        file.unlink()
        assert reader.read() == before[1000:]
    file.write_bytes(after)
    assert file.read_bytes() == after


def test_what_several_append_is_all_there(mounted: Mounted) -> None:
    file = mounted.folder / "log"
    other, _ = mounted.mount("other")
    with file.open("a") as first, (other / "log").open("a") as second:
        first.write("one\n" * 1000)
        second.write("two\n" * 1000)
    lines = file.read_text().split()
    assert (lines.count("one"), lines.count("two"), len(lines)) == (1000, 1000, 2000)


def test_two_mounts_and_rdma_paths_have_the_same_files(mounted: Mounted) -> None:
    other, _ = mounted.mount("other")
    (mounted.folder / "in").mkdir()
    (mounted.folder / "in" / "file").write_text("of a mount")
    assert (other / "in" / "file").read_text() == "of a mount"
    at = "rdma://in/more"
    with fsspec.open(at, "w", store=mounted.store) as file:
        file.write("of fsspec")
    assert (other / "in" / "more").read_text() == "of fsspec"
    assert sorted(os.listdir(other / "in")) == ["file", "more"]
    shutil.rmtree(other / "in")
    assert os.listdir(mounted.folder) == []


def times_changed(folder: Path) -> list[str]:
    """By what of all this a folder has another time."""
    changed: list[str] = []
    below, other = folder / "below", folder / "other"
    for one in below, other:
        one.mkdir()

    def check(what: str) -> None:
        changed.extend(f"{what}: {one.name}" for one in (below, other) if one.stat().st_mtime != 5)
        for one in below, other:
            os.utime(one, (5, 5))

    check("made")
    check("set")
    (below / "file").write_text("new")
    check("create")
    (below / "file").write_text("another")
    check("write")
    (below / "file").chmod(0o600)
    check("change")
    (below / "deep").mkdir()
    check("make a folder")
    (below / "deep" / "file").touch()
    check("create below")
    (below / "deep" / "file").rename(below / "deep" / "moved")
    check("rename below")
    (below / "file").rename(below / "renamed")
    check("rename")
    (other / "renamed").touch()
    check("create in the other")
    (below / "renamed").rename(other / "renamed")
    check("replace")
    (other / "renamed").unlink()
    check("remove")
    shutil.rmtree(below / "deep")
    check("remove a folder")
    return changed


def test_a_folder_has_the_time_when_a_name_has_come_or_gone(
    mounted: Mounted, tmp_path: Path
) -> None:
    assert times_changed(mounted.folder) == times_changed(tmp_path)
    before = mounted.folder.stat().st_mtime
    (mounted.folder / "new").touch()
    assert mounted.folder.stat().st_mtime > before
    other, _ = mounted.mount("other")
    os.utime(other, (7, 7))
    assert mounted.folder.stat().st_mtime == 7
    fs = fsspec.filesystem("rdma", store=mounted.store)
    fs.pipe_file("below/of fsspec", b"")
    found = fs.info("below")["mtime"]
    assert found > 5 and (mounted.folder / "below").stat().st_mtime == pytest.approx(found)
    assert {one["name"]: one["mtime"] for one in fs.ls("")}["below"] == found
    before = (mounted.folder / "below").stat().st_mtime_ns
    assert (mounted.folder / ".mmap" / "below").stat().st_mtime_ns == before


def test_python_finds_a_module_that_has_come(mounted: Mounted) -> None:
    """Python lists a folder again where its time is another one."""
    program = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
try:
    import comes
except ImportError:
    pathlib.Path(sys.argv[1], "comes.py").write_text("value = 5")
import comes
assert comes.value == 5
"""
    subprocess.run([sys.executable, "-c", program, mounted.folder], check=True, timeout=60)


def test_permissions_of_a_folder_are_those_that_another_mount_has_given(mounted: Mounted) -> None:
    other, _ = mounted.mount("other")
    ours, theirs = mounted.folder / "folder", other / "folder"
    ours.mkdir()
    opened = os.open(theirs, os.O_RDONLY)  # the kernel knows the folder meanwhile
    try:
        for one, another, mode in (ours, theirs, 0o700), (theirs, ours, 0o711):
            one.chmod(mode)
            assert stat.S_IMODE(another.stat().st_mode) == mode
    finally:
        os.close(opened)


def test_tools_that_know_files_work(mounted: Mounted, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "deep" / "er").mkdir(parents=True)
    (tree / "deep" / "er" / "large").write_bytes(os.urandom(20_000_000))
    (tree / "runs").write_text("#!/bin/sh\necho ran\n")
    (tree / "runs").chmod(0o755)
    subprocess.run(["cp", "-a", tree, mounted.folder], check=True)
    copied = mounted.folder / "tree"
    subprocess.run(["diff", "-r", tree, copied], check=True)
    assert subprocess.check_output([copied / "runs"], text=True) == "ran\n"
    assert (copied / "runs").stat().st_mtime_ns == (tree / "runs").stat().st_mtime_ns
    archive = mounted.folder / "tree.tar"
    subprocess.run(["tar", "-cf", archive, "-C", tree, "."], check=True)
    subprocess.run(["tar", "-df", archive, "-C", tree], check=True)
    zeros = ["dd", "if=/dev/zero", f"of={archive}", "bs=1M", "count=3", "seek=1", "conv=fsync"]
    subprocess.run(zeros, check=True, stderr=subprocess.DEVNULL)
    assert archive.stat().st_size == 4 << 20
    archive.rename(mounted.folder / "renamed")
    assert shutil.disk_usage(mounted.folder).total > 0


def test_tensors_are_saved_and_mapped(mounted: Mounted) -> None:
    values = torch.randn(300_000)
    torch.save({"weights": values}, mounted.folder / "model.pt")
    np.save(mounted.folder / "array.npy", values.numpy())
    shared = mounted.folder / ".mmap"
    for folder in mounted.folder, shared:
        loaded = torch.load(folder / "model.pt", mmap=True)["weights"]
        assert torch.equal(loaded, values)
    mapped = np.load(shared / "array.npy", mmap_mode="r")
    assert np.array_equal(mapped, values.numpy())
    # Who has it mapped keeps to it, also once another version is there.
    np.save(mounted.folder / "array.npy", np.zeros(5))
    assert np.array_equal(mapped, values.numpy())
    assert np.array_equal(np.load(shared / "array.npy", mmap_mode="r"), np.zeros(5))


def test_what_cannot_be_done_says_why(mounted: Mounted) -> None:
    file = mounted.folder / "file"
    file.write_bytes(b"bytes")
    with fails_with(errno.EROFS):
        (mounted.folder / ".mmap" / "file").write_text("x")
    with fails_with(errno.EROFS):
        (mounted.folder / ".mmap" / "file").unlink()
    with fails_with(errno.ENAMETOOLONG):
        (mounted.folder / ("x" * 256)).touch()
    for link in (os.link, os.symlink):
        with fails_with(errno.EPERM):
            link(file, mounted.folder / "link")
    with fails_with(errno.EPERM):
        os.chown(file, 12345, 12345)
    with file.open("rb") as reader, fails_with(errno.ENODEV):  # .mmap/file can be
        mmap.mmap(reader.fileno(), 5, access=mmap.ACCESS_READ)
    assert set(os.listxattr(file)) == {"user.rdmacoll.version"}
    before = os.getxattr(file, "user.rdmacoll.version")
    file.write_bytes(b"other bytes")
    assert int(os.getxattr(file, "user.rdmacoll.version")) > int(before)


def test_a_folder_that_is_in_use_is_refused(mounted: Mounted, tmp_path: Path) -> None:
    (mounted.folder / "file").touch()
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").touch()
    for folder, why in (
        (mounted.folder, "is a mount already"),
        (full, "would be hidden"),
        (tmp_path / "nowhere", "give a folder that is there"),
    ):
        status, said = mounted.start(folder).end()
        assert status == 1
        assert why in said
        assert "Traceback" not in said


def test_without_a_store_it_says_what_to_give(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MASTER_")}
    command = [sys.executable, "-m", "rdmacoll", "mount", str(tmp_path)]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "give --store HOST:PORT" in ended.stderr
    assert "Traceback" not in ended.stderr
