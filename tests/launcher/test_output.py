"""Output that cannot be written: a line says so, the job goes on, and the exit status shows it.

Readers of every kind, and those that do not read, are in torture/.
Floor: tests.
"""

import os
import shlex
import subprocess

import pytest
from job_runner import LIMIT_S, Jobs, both
from namespaces import in_namespace

PRINTS = """
    import os, sys
    for n in range(20_000):
        print(n, "x" * 60)
    sys.stdout.flush()
    open("end." + os.environ["RANK"], "w")
"""


def shell(jobs: Jobs, line: str) -> "subprocess.CompletedProcess[bytes]":
    """Runs the line in a shell that has the command `rdmarun`."""
    command = f'rdmarun() {{ {shlex.join(jobs.rdmarun)} "$@"; }}; {line}'
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
    """The status is that of lost output even where no line can say so."""
    writes_lost = to != "<&-"
    jobs.script(PRINTS.replace('"x" * 60)', '"x" * 60, file=sys.stderr)'))
    done = shell(jobs, f"rdmarun -np 2 script.py {to}")
    assert done.returncode == (os.EX_IOERR if writes_lost else 0)
    assert len(jobs.files("end.*")) == 2
    assert done.stdout == b""


def test_the_status_of_a_failed_rank_goes_before_that_of_lost_output(jobs: Jobs) -> None:
    jobs.script(PRINTS + "    sys.exit(3)\n")
    assert shell(jobs, "rdmarun -np 2 script.py >/dev/full").returncode == 3


@both
def test_a_reader_that_leaves(jobs: Jobs, options: list[str]) -> None:
    jobs.script("while True: print('more')")
    done = shell(jobs, f"rdmarun {' '.join(options)} script.py | head -1; echo ${{PIPESTATUS[0]}}")
    first, status = done.stdout.splitlines()
    assert (first[1:], status) in ((b"0]: more", b"141"), (b"1]: more", b"141"))
    assert b"stopped by SIGPIPE" in done.stderr


def test_untagged_bytes_arrive_unchanged(jobs: Jobs) -> None:
    data = bytes(range(256)) * 5000 + b"\r\n\r\r\n no newline at the end \r"
    (jobs.folder / "data").write_bytes(data)
    jobs.script("import sys; sys.stdout.buffer.write(open('data', 'rb').read())")
    done = shell(jobs, "rdmarun -np 1 --no-tag-output --output-filename out script.py")
    assert done.stdout == data
    assert (jobs.folder / "out/rank.0/stdout").read_bytes() == data


def test_lines_longer_than_the_buffers(jobs: Jobs) -> None:
    """Such a line may come in pieces between other ranks' lines; each piece has its rank's tag."""
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


def test_output_of_children_that_outlive_their_rank_arrives(jobs: Jobs) -> None:
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


def test_a_job_under_nohup_ignores_sighup(jobs: Jobs) -> None:
    jobs.script("""
        import os, signal, time
        os.kill(int(open("pid").read()), signal.SIGHUP)
        time.sleep(0.5)  # for the end of the job to show
        print("went on")
    """)
    line = "trap '' HUP; echo $BASHPID > pid; exec"
    done = shell(jobs, f"({line} {shlex.join(jobs.rdmarun)} -np 1 script.py)")
    assert (done.returncode, done.stdout) == (0, b"[0]: went on\n")


def test_a_full_disk(jobs: Jobs) -> None:
    """The disk is mounted in a namespace of its own, which only root can make."""
    disk = jobs.folder / "disk"
    disk.mkdir()
    jobs.script(PRINTS)
    mount = f"mount -t tmpfs -o size=256k tmpfs {disk}"
    run = f"{shlex.join(jobs.rdmarun)} -np 2 --output-filename {disk} script.py"
    done = shell(jobs, shlex.join([*in_namespace("mount"), "sh", "-c", f"{mount} && {run}"]))
    assert done.returncode == os.EX_IOERR, done.stderr
    said = [line for line in done.stderr.splitlines() if b"No space left on device" in line]
    assert len(said) == 2 and all(b"--output-filename" in line for line in said)
    assert done.stdout.count(b"\n") == 40_000
