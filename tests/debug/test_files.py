"""Files in folders where others may write: nothing that these put there is followed, opened or
waited for.
"""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from as_root import only_as_root
from made_dumps import collective, dump_of, text_of
from other_user import LIMIT_S, NOBODY

from rdmacoll.base import files
from rdmacoll.bench.options import BadArgument, writable
from rdmacoll.debug.dumps import read_folder
from rdmacoll.debug.timeline import write_timeline
from rdmacoll.debug.timeline_writer import TimelineWriter
from rdmacoll.debug.to_torch import write_for_torch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "of all"
    path.mkdir()
    path.chmod(0o777)
    return path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_file_appears_whole_and_for_this_user_alone(folder: Path) -> None:
    path = folder / "file"
    for text in ("a longer text", "text"):
        files.write(path, text)
        assert path.read_text() == text
        assert mode_of(path) == 0o600
    assert list(folder.iterdir()) == [path]
    umask = os.umask(0o022)
    try:
        files.write(path, "for all", files.SHARED)
    finally:
        os.umask(umask)
    assert mode_of(path) == 0o644


def test_folders_are_made_for_this_user_alone(tmp_path: Path) -> None:
    files.make_folder(tmp_path / "one" / "two")
    files.make_folder(tmp_path / "one" / "two")
    assert [mode_of(tmp_path / "one"), mode_of(tmp_path / "one" / "two")] == [0o700, 0o700]


def test_a_link_is_refused_and_what_it_names_is_left_alone(folder: Path) -> None:
    victim, path = folder / "victim", folder / "file"
    victim.write_text("dear")
    path.symlink_to(victim)
    for write in (lambda: files.write(path, "text"), lambda: files.create(path)):
        with pytest.raises(OSError, match="something else than a regular file"):
            write()
    assert victim.read_text() == "dear"
    assert sorted(folder.iterdir()) == [path, victim]


def test_a_pipe_is_refused_and_not_waited_for(folder: Path) -> None:
    path = folder / "file"
    os.mkfifo(path)
    with pytest.raises(OSError, match=str(path)):
        files.write(path, "text")
    with pytest.raises(OSError, match=str(path)):
        write_timeline([dump_of(0, 1)], path)
    with pytest.raises(BadArgument, match="--json .* something else than a regular file"):
        writable("--json", path)


@pytest.mark.parametrize(
    ("name", "arrives"),
    [("/dev/stdout", True), ("/dev/stderr", True), ("/dev/fd/1", True), ("/dev/null", False)],
)
def test_what_the_user_has_opened_is_written_as_it_is(
    name: str, arrives: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    writable("--json", Path(name))
    files.write(Path(name), "te")
    files.write(Path(name), "xt")
    assert "".join(capfd.readouterr()) == ("text" if arrives else "")


def test_what_the_user_has_not_opened_is_refused(folder: Path) -> None:
    with open(folder / "file", "wb") as file:
        path = Path(f"/dev/fd/{file.fileno()}")
    with pytest.raises(BadArgument, match=f"--json {path}: it is not open here"):
        writable("--json", path)
    with pytest.raises(OSError, match=str(path)):
        files.write(path, "text")


def test_a_file_of_another_user_is_refused(folder: Path) -> None:
    only_as_root()
    path = folder / "file"
    path.write_text("theirs")
    os.chown(path, NOBODY, -1)
    with pytest.raises(OSError, match=f"belongs to user {NOBODY}"):
        files.write(path, "text")
    assert path.read_text() == "theirs"


def test_what_torchfrtrace_reads_goes_through_no_link(tmp_path: Path, folder: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("dear")
    (folder / "rdmacoll_rank_0").symlink_to(victim)
    with pytest.raises(OSError, match="rdmacoll_rank_0"):
        write_for_torch([dump_of(0, 1)], folder)
    assert victim.read_text() == "dear"


def test_a_rank_ends_though_a_pipe_lies_where_its_timeline_goes(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(folder / "trace-0.json")
    dump = text_of(0, 1, collective(1))
    writer = TimelineWriter(lambda: dump, str(folder / "trace.json"))
    closing = threading.Thread(target=writer.close, daemon=True)
    closing.start()
    closing.join(LIMIT_S)
    assert not closing.is_alive()
    assert "RDMACOLL_TIMELINE: " in capfd.readouterr().err


def test_a_folder_is_shown_though_pipes_links_and_more_lie_in_it(folder: Path) -> None:
    (folder / "rdmacoll-rank0-pid1000.json").write_text(text_of(0, 1, collective(1)))
    os.mkfifo(folder / "rdmacoll-1.json")
    (folder / "rdmacoll-2.json").symlink_to("/dev/zero")
    (folder / "rdmacoll-3\033[2J.json").write_bytes(b"\xff")
    (folder / "rdmacoll-4.json").mkdir()
    with open(folder / "rdmacoll-5.json", "wb") as large:
        large.truncate(1 << 40)
    dumps, problems = read_folder(folder)
    assert [dump.rank for dump in dumps] == [0]
    assert len(problems) == 5
    show = [sys.executable, "-m", "rdmacoll", "debug", "show", str(folder)]
    shown = subprocess.run(show, capture_output=True, text=True, timeout=LIMIT_S)
    assert shown.returncode == 0, shown.stderr
    assert "the last was #1" in shown.stdout
    assert "\033" not in shown.stderr and shown.stderr.count("\n") == 5
