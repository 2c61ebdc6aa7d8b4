"""--output-filename in folders where others can write: rdmarun follows, opens and removes nothing
of theirs.

Floor: tests.
"""

import gc
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from as_root import only_as_root
from job_runner import Jobs
from rdmacoll.launcher.agent.output_files import FileError, open_output_files

STRANGER = 4321  # a uid


def give_to_stranger(path: Path) -> None:
    only_as_root()
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


def folder_of_stranger(rank: Path) -> None:
    rank.mkdir(parents=True)
    give_to_stranger(rank)


def file_of_stranger(rank: Path) -> None:
    rank.mkdir(parents=True)
    (rank / "stdout").touch()
    give_to_stranger(rank / "stdout")


def link_instead_of_folder(rank: Path) -> None:
    rank.parent.mkdir()
    rank.symlink_to("/etc")


def link_instead_of_file(rank: Path) -> None:
    rank.mkdir(parents=True)
    (rank / "stderr").symlink_to(rank.parent.parent / "victim")


def pipe_instead_of_file(rank: Path) -> None:
    rank.mkdir(parents=True)
    os.mkfifo(rank / "stdout")


def second_name_of_a_file(rank: Path) -> None:
    rank.mkdir(parents=True)
    (rank / "stdout").hardlink_to(rank.parent.parent / "victim")


def link_of_stranger_on_the_way(rank: Path) -> None:
    rank.parent.symlink_to("/tmp")
    give_to_stranger(rank.parent)


def loop(rank: Path) -> None:
    rank.parent.symlink_to(rank.parent.name)


def file_instead_of_folder(rank: Path) -> None:
    rank.parent.touch()


@pytest.mark.parametrize("is_restart", [False, True])
@pytest.mark.parametrize(
    ("plant", "says"),
    [
        (folder_of_stranger, "rank.0 is of another user"),
        (file_of_stranger, "stdout is of another user"),
        (link_instead_of_folder, "rank.0 is no folder"),
        (link_instead_of_file, "stderr is no plain file"),
        (pipe_instead_of_file, "stdout is no plain file"),
        (second_name_of_a_file, "stdout is no plain file with one name"),
        (link_of_stranger_on_the_way, "out is a link of another user"),
        (loop, "too many links"),
        (file_instead_of_folder, "out is no folder"),
    ],
)
def test_refused(
    tmp_path: Path, plant: Callable[[Path], None], says: str, is_restart: bool
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    plant(tmp_path / "out/rank.0")
    gc.collect()  # else what other tests have left may be closed meanwhile
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileError, match=says):
        open_output_files(tmp_path / "out", "rank.0", is_restart)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert victim.read_text() == "as it was"


def test_refused_before_any_rank_starts(jobs: Jobs) -> None:
    folder_of_stranger(jobs.folder / "out/rank.1")
    done = jobs.run_script("open('started', 'w')", "-np", "2", "--output-filename", "out")
    assert done.returncode == 1
    assert "cannot start rank 1: " in done.stderr and "is of another user" in done.stderr
    assert jobs.files("started") == []


def test_what_is_made_is_for_this_user_alone(jobs: Jobs) -> None:
    assert jobs.run_script("pass", "-np", "1", "--output-filename", "a/b").returncode == 0
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in (jobs.folder / "a").rglob("*")
    }
    assert modes == {"b": 0o700, "rank.0": 0o700, "stdout": 0o600, "stderr": 0o600}


def test_links_of_this_user_are_followed_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "near").symlink_to("real")
    (tmp_path / "far").symlink_to(tmp_path / "near" / ".." / "near")
    for fd in open_output_files(tmp_path / "far/deep", "rank.3", is_restart=False):
        os.write(fd, b"x")
        os.close(fd)
    assert (tmp_path / "real/deep/rank.3/stderr").read_text() == "x"
