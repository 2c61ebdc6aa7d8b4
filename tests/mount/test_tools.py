"""The tools of the command line do in the mounted folder what they do in another one.

Floor: tests.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from mounted_job import Mounted

MIB = 1 << 20
DAY_S = 86_400
# What each of them does to `large`, `text` and `folder`; both folders, and what it says, are
# compared afterwards. Nothing here depends on the time of day, or on what a folder's size is.
SCRIPTS = {
    "dd": """
        dd if=large of=copy bs=64k conv=fsync
        dd if=large of=copy bs=4k count=10 seek=100 conv=notrunc
        dd if=large of=copy bs=1000 count=3 oflag=append conv=notrunc
        dd if=large of=end bs=1M skip=2
        dd if=large of=end bs=100 seek=7 count=1
        dd if=/dev/zero of=holes bs=1 count=1 seek=3000000
        dd if=large of=sparse conv=sparse
        dd if=large of=large bs=1M skip=1 count=1 conv=notrunc
        """,
    "sed": """
        chmod 640 text
        sed -i 's/^line 7$/seven/; $d' text
        sed -i.before 's/seven/7/' text
        sed -i '1,3d' folder/*
        head -n 8 text text.before
        """,
    "truncate": """
        truncate -s 1000 text
        truncate -s +500 text
        tail -c 501 text | od -c
        truncate -s -1 large
        truncate -s 20M new
        truncate -c -s 5 none
        truncate -r text folder/one
        stat -c '%n %s' text large new folder/one
        """,
    "find": """
        chmod 600 folder/one
        touch -d 2001-02-03T04:05:06.789 folder/two
        : > empty
        mkdir none
        find . -type f -size +1M | sort
        find . -perm 600 -printf '%P %y %m %s\\n'
        find . -type f -not -newermt 2002-01-01 -printf '%P %T@\\n' | sort
        find . -empty | sort
        find folder -name 'o*' -delete
        find . -name two -execdir mv {} 2 ';'
        """,
    "sums": """
        find large text folder -type f -print0 | sort -z | xargs -0 sha256sum > sums
        sha256sum -c sums
        cp large folder/other
        cmp large folder/other
        printf x >> folder/other
        cmp large folder/other
        """,
    "du": """
        mkdir -p one/two
        cp large one/two/three
        du -b large one/two/three
        find . -type f -exec du -b {} + | sort
        """,
    "streams": """
        sort -r -o text text
        split -b 100k large part.
        cat part.* | cmp - large
        gzip -n text
        gunzip -k text.gz
        tee -a one two < text > three
        cat one >> three
        install -m 751 text installed
        mv part.aa folder/
        rm -r part.*
        """,
}


def ran(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def fill(folder: Path) -> Path:
    drawn = random.Random(21)
    (folder / "folder" / "deep er").mkdir(parents=True)
    (folder / "nothing").mkdir()
    (folder / "large").write_bytes(drawn.randbytes(3 * MIB + 5))
    (folder / "text").write_text("".join(f"line {n}\n" for n in range(5000)))
    for number, name in enumerate(["one", "two", "deep er/ü"]):
        (folder / "folder" / name).write_text("line\n" * (number + 5))
    (folder / "runs").write_text("#!/bin/sh\necho ran\n")
    (folder / "runs").chmod(0o751)
    # Long ago: rsync takes times within one second for the same.
    for number, one in enumerate(sorted(folder.rglob("*"), reverse=True)):
        os.utime(one, ns=(0, DAY_S * 10**9 * (number + 1) + 7))
    os.utime(folder, ns=(0, 9))
    return folder


def about(folder: Path, times: bool) -> str:
    """Names, modes and sizes; a folder's size means nothing."""
    time = " %T@" if times else ""
    kinds = ["-type", "d", "-printf", f"%P %m{time}\\n", "-o", "-printf", f"%P %y %m %s{time}\\n"]
    return "\n".join(sorted(ran("find", folder, *kinds).split("\n")))


def assert_same(one: Path, other: Path, times: bool = False) -> None:
    ran("diff", "-r", one, other)
    assert about(one, times) == about(other, times)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return fill(tmp_path / "tree")


@pytest.mark.parametrize("script", SCRIPTS)
def test_they_do_as_in_another_folder(mounted: Mounted, tree: Path, script: str) -> None:
    inside = mounted.folder / "tree"
    inside.mkdir()
    fill(inside)
    said = [
        subprocess.run(
            ["sh", "-xc", SCRIPTS[script]], cwd=folder, capture_output=True, text=True, timeout=60
        )
        for folder in (tree, inside)
    ]
    assert said[0].stdout == said[1].stdout
    assert_same(tree, inside)


def test_cp_keeps_what_it_copies(mounted: Mounted, tree: Path, tmp_path: Path) -> None:
    copies = [mounted.folder / "copy", mounted.folder / "copy of it", tmp_path / "back"]
    for before, copy in zip([tree, *copies], copies, strict=False):
        ran("cp", "-a", before, copy)
        assert_same(tree, copy, times=True)
    assert ran(copies[1] / "runs") == "ran\n"
    ran("rm", "-r", copies[0])
    ran("mv", copies[1], tmp_path / "moved")
    assert_same(tree, tmp_path / "moved", times=True)
    assert os.listdir(mounted.folder) == []


@pytest.mark.parametrize("way", [[], ["--inplace"]], ids=["anew", "in place"])
def test_rsync(mounted: Mounted, tree: Path, tmp_path: Path, way: list[str]) -> None:
    copy, back = mounted.folder / "copy", tmp_path / "back"
    # Of what has changed the difference alone is sent, as to another host.
    rsync = ["rsync", "-a", "-i", "--delete", "--no-whole-file", *way]
    ran(*rsync, f"{tree}/", copy)
    assert_same(tree, copy, times=True)
    assert ran(*rsync, f"{tree}/", copy) == ""
    assert ran(*rsync, "--checksum", f"{tree}/", copy) == ""
    before = (tree / "large").read_bytes()
    with (tree / "large").open("r+b") as file:
        file.seek(MIB)
        file.write(b"changed")
    (tree / "folder" / "one").unlink()
    (tree / "folder" / "new").write_text("new")
    for name in "large", "text", "folder":
        os.utime(tree / name, (5, 5))
    with (copy / "large").open("rb", buffering=0) as reader:
        said = ran(*rsync, f"{tree}/", copy)
        assert reader.readall() == before
    assert_same(tree, copy, times=True)
    changes = sorted(line.split(" ", 1)[1].strip() for line in said.splitlines())
    assert changes == ["folder/", "folder/new", "folder/one", "large", "text"]
    ran(*rsync, f"{copy}/", back)
    assert_same(tree, back, times=True)


def test_rsync_appends(mounted: Mounted, tree: Path) -> None:
    copy = mounted.folder / "copy"
    ran("rsync", "-a", f"{tree}/", copy)
    for name in "large", "text":
        with (tree / name).open("ab") as file:
            file.write(b"more\n" * 1000)
    ran("rsync", "-a", "--append-verify", f"{tree}/", copy)
    assert_same(tree, copy, times=True)


def test_tar(mounted: Mounted, tree: Path, tmp_path: Path) -> None:
    for number, options in enumerate([[], ["-z"]]):
        archive, out = mounted.folder / f"{number}.tar", mounted.folder / f"out{number}"
        out.mkdir()
        ran("tar", "--format=pax", *options, "-C", tree, "-cf", archive, ".")
        ran("tar", *options, "-C", tree, "-df", archive)
        ran("tar", *options, "-C", out, "-xpf", archive)
        assert_same(tree, out, times=True)
        ran("tar", *options, "-C", out, "-df", archive)
    archive = mounted.folder / "0.tar"
    (tree / "new").write_text("new")
    ran("tar", "-C", tree, "-rf", archive, "./new")
    ran("tar", "--delete", "-f", archive, "./large")
    names = set(ran("tar", "-tf", archive).split("\n"))
    assert "./new" in names and "./large" not in names and "./text" in names
    piped = "tar --format=pax -C out0 -cf - . | tar -C piped -xpf -"
    (mounted.folder / "piped").mkdir()
    ran("sh", "-c", piped, cwd=mounted.folder)
    assert_same(mounted.folder / "out0", mounted.folder / "piped", times=True)
