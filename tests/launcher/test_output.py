"""Output that cannot be written: a line says so, the job goes on, and the status tells.

Every kind of reader, and those that do not read: torture/.
Floor: tests.
"""

import os
import shlex
import subprocess

import pytest
from job_runner import LIMIT_S, Jobs
from namespaces import in_namespace

ONE_HOST = ["-np", "2"]
TWO_HOSTS = ["-np", "2", "-H", "localhost:1,127.0.0.1:1"]  # through mpiexec
both = pytest.mark.parametrize("options", [ONE_HOST, TWO_HOSTS], ids=["one host", "two hosts"])

PRINTS = """
    import os, sys
    for n in range(20_000):
        print(n, "x" * 60)
    sys.stdout.flush()
    open("end." + os.environ["RANK"], "w")
"""


def shell(jobs: Jobs, line: str) -> "subprocess.CompletedProcess[bytes]":
    """The line of a shell, in which $RDMARUN is the command."""
    command = f'rdmarun() {{ {jobs.python} -m rdmacoll.launcher "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", command],
        cwd=jobs.folder,
        env=jobs.env({}),
        capture_output=True,
        timeout=LIMIT_S,
    )


@both
@pytest.mark.parametrize(
    ("to", "why"), [(">/dev/full", b"No space left on device"), (">&-", b"Bad file descriptor")]
)
def test_stdout_that_takes_nothing(jobs: Jobs, options: list[str], to: str, why: bytes) -> None:
    jobs.script(PRINTS)
    done = shell(jobs, f"rdmarun {' '.join(options)} script.py {to}")
    assert done.returncode == os.EX_IOERR
    said = [line for line in done.stderr.splitlines() if b"standard output" in line]
    assert said == [
        b"rdmarun: standard output: " + why + b"; the rest of it is lost, the job goes on"
    ]
    assert len(jobs.files("end.*")) == 2


@pytest.mark.parametrize("to", ["2>/dev/full", "2>&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams(jobs: Jobs, to: str) -> None:
    """Also where nothing can be said: what was to be written decides the status."""
    writes_lost = to != "<&-"
    jobs.script(PRINTS.replace('"x" * 60)', '"x" * 60, file=sys.stderr)'))
    done = shell(jobs, f"rdmarun -np 2 script.py {to}")
    assert done.returncode == (os.EX_IOERR if writes_lost else 0)
    assert len(jobs.files("end.*")) == 2
    assert done.stdout == b""


def test_a_rank_that_fails_has_the_last_word(jobs: Jobs) -> None:
    jobs.script(PRINTS + "    sys.exit(3)\n")
    assert shell(jobs, "rdmarun -np 2 script.py >/dev/full").returncode == 3


@both
def test_a_reader_that_leaves(jobs: Jobs, options: list[str]) -> None:
    jobs.script("while True: print('more')")
    done = shell(jobs, f"rdmarun {' '.join(options)} script.py | head -1; echo ${{PIPESTATUS[0]}}")
    first, status = done.stdout.splitlines()
    assert (first[1:], status) in ((b"0]: more", b"141"), (b"1]: more", b"141"))
    assert b"stopped by SIGPIPE" in done.stderr


def test_untagged_bytes_come_as_they_are(jobs: Jobs) -> None:
    data = bytes(range(256)) * 5000 + b"\r\n\r\r\n no newline at the end \r"
    (jobs.folder / "data").write_bytes(data)
    jobs.script("import sys; sys.stdout.buffer.write(open('data', 'rb').read())")
    done = shell(jobs, "rdmarun -np 1 --no-tag-output --output-filename out script.py")
    assert done.stdout == data
    assert (jobs.folder / "out/rank.0/stdout").read_bytes() == data


def test_lines_longer_than_is_held(jobs: Jobs) -> None:
    """A piece of one ends where another rank's line begins, and goes on with its tag."""
    text = """
        import os, sys
        letter = "ab"[int(os.environ["RANK"])]
        for _ in range(3):
            sys.stdout.write(letter * 3_000_000 + "\\n")
    """
    done = jobs.run_script(text, "-np", "2")
    by_rank = {"0": "", "1": ""}
    for line in done.stdout.splitlines():
        by_rank[line[1]] += line.partition(": ")[2]
    assert by_rank == {"0": "a" * 9_000_000, "1": "b" * 9_000_000}


def test_children_that_outlive_a_rank_are_heard(jobs: Jobs) -> None:
    text = """
        import os, subprocess, time
        if os.environ["RANK"] == "0":
            child = "sleep 1; echo from the child; touch said"
            subprocess.Popen(["sh", "-c", child], start_new_session=True)
        else:
            while not os.path.exists("said"):
                time.sleep(0.01)
    """
    assert jobs.run_script(text, "-np", "2").stdout == "[0]: from the child\n"


def test_nohup_keeps_its_word(jobs: Jobs) -> None:
    jobs.script("""
        import os, signal, time
        os.kill(int(open("pid").read()), signal.SIGHUP)
        time.sleep(0.5)  # for the end of the job to show
        print("went on")
    """)
    line = "trap '' HUP; echo $BASHPID > pid; exec"
    done = shell(jobs, f"({line} {jobs.python} -m rdmacoll.launcher -np 1 script.py)")
    assert (done.returncode, done.stdout) == (0, b"[0]: went on\n")


def test_a_full_disk(jobs: Jobs) -> None:
    """In a mount namespace, which only root can have."""
    disk = jobs.folder / "disk"
    disk.mkdir()
    jobs.script(PRINTS)
    mount = f"mount -t tmpfs -o size=256k tmpfs {disk}"
    run = f"{jobs.python} -m rdmacoll.launcher -np 2 --output-filename {disk} script.py"
    done = shell(jobs, shlex.join([*in_namespace("mount"), "sh", "-c", f"{mount} && {run}"]))
    assert done.returncode == os.EX_IOERR, done.stderr
    said = [line for line in done.stderr.splitlines() if b"No space left on device" in line]
    assert len(said) == 2 and all(b"--output-filename" in line for line in said)
    assert done.stdout.count(b"\n") == 40_000
