"""rdmarun --config-file: options in a file of TOML.

Floor: tests.
"""

import sys
from pathlib import Path

import pytest
from job_runner import Jobs
from rdmacoll.launcher.base.hosts import Host
from rdmacoll.launcher.command.options import Options, parse

EVERY_KIND = """
nproc-per-node = 2
hosts = ["a", "b"]
env = ["ONE=1", "TWO=a,b"]
preload = "json"
heap-size = "64k"
start-timeout = 1.5
verbose = true
tag-output = false
elastic = false
bind = "numa"
local-ranks-filter = [0, 1]
"""


def options_of(folder: Path, text: str, *argv: str) -> Options:
    file = folder / "rdmarun.toml"
    file.write_text(text)
    return parse([f"--config-file={file}", *argv, "script.py", "--bind", "mine"], {}, "0")


def test_every_kind_of_option(tmp_path: Path) -> None:
    options = options_of(tmp_path, EVERY_KIND)
    assert options.hosts == [Host("a", 2), Host("b", 2)]
    assert options.env == {"ONE": "1", "TWO": "a,b", "RDMACOLL_HEAP_BYTES": "65536"}
    assert (options.preload, options.start_timeout_s, options.bind) == (["json"], 1.5, "numa")
    assert (options.verbose, options.tag_output, options.elastic) == (True, False, False)
    assert options.shown == [0, 1]
    assert (options.script, options.args) == ("script.py", ["--bind", "mine"])


def test_the_command_line_goes_first(tmp_path: Path) -> None:
    argv = ["-H", "c:3", "-x", "ONE=2", "--tag-output", "--bind=cores"]
    text = EVERY_KIND.replace("nproc-per-node", "max-restarts")
    options = options_of(tmp_path, text, *argv)
    assert options.hosts == [Host("c", 3)]
    assert (options.env["ONE"], options.env["TWO"]) == ("2", "a,b")
    assert (options.tag_output, options.bind, options.max_restarts) == (True, "cores", 2)


@pytest.mark.parametrize("argv", [["--hostfile", "hosts"], ["--standalone", "-np", "2"]])
def test_hosts_of_the_command_line_in_the_place_of_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts").write_text("localhost slots=2\n")
    assert options_of(tmp_path, 'hosts = "a,b"', *argv).hosts == [Host("localhost", 2)]


@pytest.mark.parametrize(
    ("text", "flag"), [("np = 2", "--nproc-per-node"), ("nproc-per-node = 2", "-np")]
)
def test_ranks_of_the_command_line_in_the_place_of_any(
    tmp_path: Path, text: str, flag: str
) -> None:
    assert options_of(tmp_path, text, flag, "4").hosts == [Host("localhost", 4)]


def test_names_of_one_letter_and_of_others(tmp_path: Path) -> None:
    text = "horovod = true\nnum-proc = 2\ngloo = true\nblacklist-cooldown-range = [1, 9]\nnp = 2"
    options = options_of(tmp_path, text)
    assert options.horovod and [line.split()[0] for line in options.said] == [
        "--gloo",
        "--blacklist-cooldown-range",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nproc-per-nod = 2", "nproc-per-nod is no option that can be in it; did you mean nproc-"),
        ("zzz = 2", "zzz is no option that can be in it; rdmarun --help has their long names"),
        ("x = 'A=1'", "x is no option that can be in it"),
        ("config-file = 'more'", "config-file is no option that can be in it; rdmarun --help has"),
        ("np: 2", "it is TOML, a line is `name = 4`"),
        ("np = true", "np = true: it takes a value"),
        ("elastic = 1", "elastic = 1: it is true or false"),
        ("np = [[1]]", "np: give a number, a text, true or false, or a list of texts"),
        ("[np]\na = 1", "np: give a number, a text"),
        ("np = 0", ": error: argument -np/-n/--np/--nproc: 0 is not a positive number"),
        ("bind = 'socket'", "argument --bind: invalid choice: 'socket'"),
    ],
)
def test_what_is_wrong(
    tmp_path: Path, text: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        options_of(tmp_path, text, "-np", "2")
    said = capsys.readouterr().err
    assert f"--config-file {tmp_path / 'rdmarun.toml'}" in said and says in said


def test_a_file_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "latin").write_bytes(b"np = '\xe9'")
    for name, why in ("none", "No such file or directory"), ("latin", "is not UTF-8 text"):
        with pytest.raises(SystemExit):
            parse(["--config-file", str(tmp_path / name), "s.py"], {}, "0")
        assert f"--config-file {tmp_path / name}: {why}" in capsys.readouterr().err


def test_a_python_without_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tomllib", None)
    with pytest.raises(SystemExit):
        options_of(tmp_path, "np = 2")
    assert "needs Python 3.11, whose tomllib reads it" in capsys.readouterr().err


def test_a_job(jobs: Jobs) -> None:
    (jobs.folder / "job.toml").write_text('np = 2\nenv = ["A=b"]\ntag-output = false\n')
    done = jobs.run("--config-file", "job.toml", jobs.script("import os; print(os.environ['A'])"))
    assert (done.returncode, done.stdout) == (0, "b\nb\n"), done.stderr
