"""torchrun's options: those that mean something here, and a word about each of the others.

Floor: tests.
"""

import pytest
from job_runner import Jobs
from rdmacoll.launcher.base.hosts import Host
from rdmacoll.launcher.command.flags.torchrun_flags import NOT_NEEDED, REFUSED, SHORT, spelled
from rdmacoll.launcher.command.options import Options, parse
from torch.distributed.run import get_args_parser

SHOW = "import os; print(*(os.environ[name] for name in ('RANK', 'WORLD_SIZE', 'ROLE_NAME')))"


def options_of(*argv: str) -> Options:
    return parse([*argv, "script.py", "--epochs", "3"], {}, "0")


def test_a_line_of_torchrun_runs_as_it_is(jobs: Jobs) -> None:
    argv = ["--standalone", "--nnodes", "1", "--nproc-per-node", "4", "--role", "trainer"]
    done = jobs.run(*argv, "-x", "OMP_NUM_THREADS=1", jobs.script(SHOW))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [f"[{n}]: {n} 4 trainer" for n in range(4)]


def test_every_option_of_torchrun_is_known() -> None:
    """Those of the torch that is installed."""
    known = {"--nnodes", "--nproc-per-node", "--node-rank", "--standalone", "--max-restarts"}
    known |= {"--role", "--module", "-m", "--no-python", "--log-dir", "--local-ranks-filter"}
    known |= {*NOT_NEEDED, *REFUSED, *SHORT.values(), "--help", "-h"}
    theirs = {flag for action in get_args_parser()._actions for flag in action.option_strings}
    assert {flag.replace("_", "-") for flag in theirs} <= known


@pytest.mark.parametrize("flag", NOT_NEEDED)
def test_what_is_not_needed_is_said(flag: str) -> None:
    values, why = NOT_NEEDED[flag]
    names = [*spelled(flag), *([SHORT[flag]] if flag in SHORT else [])]
    for name in names:
        options = options_of("-np", "2", name, *["value"] * values)
        assert options.said == [f"{flag} changes nothing: {why}"]
        assert (options.script, options.args) == ("script.py", ["--epochs", "3"])


@pytest.mark.parametrize("flag", REFUSED)
def test_what_cannot_be_had_says_what_can(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    values, remedy = REFUSED[flag]
    for name in spelled(flag):
        with pytest.raises(SystemExit):
            options_of("-np", "2", name, *["value"] * values)
        assert f"{flag}: {remedy}" in capsys.readouterr().err


def test_other_names_of_our_own() -> None:
    options = options_of("--nproc_per_node=2", "--max_restarts=3", "--log_dir", "logs", "--module")
    assert (options.max_restarts, options.output_dir, options.module) == (3, "logs", True)
    assert options_of("-np", "2", "--no_python").no_python


def test_numbers_of_hosts() -> None:
    two = ["-H", "a:2,b:2"]
    assert options_of("--nnodes", "2", "--node_rank", "0", *two).said == []
    assert options_of("--nnodes", "1:2", *two).said == [
        "--nnodes 1:2: no host joins later; --min-np N says how few ranks go on"
    ]
    assert options_of("--nnodes=2", "--nproc-per-node=3", *two).hosts == [
        Host("a", 3),
        Host("b", 3),
    ]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["-np", "2", "--nnodes", "2"], "--nnodes 2, but the ranks are on localhost: rdmarun is"),
        (
            ["-H", "a,b", "--nnodes", "1"],
            "--nnodes 1, but the ranks are on a,b: rdmarun is started",
        ),
        (["-H", "a,b", "--nnodes", "3:4"], "--nnodes 3:4, but the ranks are on a,b"),
        (["-H", "a,b", "--nnodes", "2:1"], "'2:1' is no number of hosts, and no MIN:MAX"),
        (["-H", "a,b", "--nnodes", "0"], "'0' is no number of hosts"),
        (["-np", "2", "--node-rank", "1"], "--node-rank 1: rdmarun is started once, on one host"),
        (["--standalone", "-H", "a"], "not allowed with argument"),
        (["--standalone"], "how many ranks? give -np N"),
    ],
)
def test_jobs_that_were_not_meant(
    argv: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        options_of(*argv)
    assert says in capsys.readouterr().err
