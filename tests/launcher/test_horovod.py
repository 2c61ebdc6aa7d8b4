"""rdmarun --horovod, horovodrun's options with it, and Horovod's variables.

Scripts here import `horovod` alone, which imports no torch. What is behind it: tests/horovod.
Floor: tests.
"""

import pytest
from job_runner import TWO_HOSTS, Jobs
from rdmacoll.launcher.command.options import Options, parse

from rdmacoll.base.horovod_folder import FOLDER


def options_of(*argv: str, **environ: str) -> Options:
    return parse(["--horovod", *argv, "script.py"], environ, "0")


@pytest.mark.parametrize(
    ("argv", "name", "value"),
    [
        (["--timeline-filename", "a b.json"], "HOROVOD_TIMELINE", "a b.json"),
        (["--timeline-mark-cycles"], "HOROVOD_TIMELINE_MARK_CYCLES", "1"),
        (["--stall-check-warning-time-seconds", "7"], "HOROVOD_STALL_CHECK_TIME_SECONDS", "7"),
        (["--stall-check-shutdown-time-seconds", "9"], "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "9"),
        (["--no-timeline-mark-cycles"], "HOROVOD_TIMELINE_MARK_CYCLES", "0"),
        (["--no-stall-check"], "HOROVOD_STALL_CHECK_DISABLE", "1"),
        (["--no-stall-check", "--stall-check"], "HOROVOD_STALL_CHECK_DISABLE", "0"),
        (["--elastic-timeout", "30"], "HOROVOD_ELASTIC_TIMEOUT", "30"),
        (["--log-level", "WARNING"], "RDMACOLL_LOG", "warn"),
        (["--network-interface", "eth0"], "RDMACOLL_SOCKET_IFNAME", "=eth0"),
        (["--nics", "eth0", "--network-interface", "ib0"], "RDMACOLL_SOCKET_IFNAME", "=eth0,ib0"),
        (["-x", "PYTHONPATH=mine"], "PYTHONPATH", f"{FOLDER}:mine"),
    ],
)
def test_variables(argv: list[str], name: str, value: str) -> None:
    options = options_of("-np", "2", *argv)
    assert options.env == {"PYTHONPATH": FOLDER, name: value}
    assert options.said == []


def test_other_names_of_our_own() -> None:
    options = options_of("--num-proc", "4", "--min-num-proc", "2", "--reset-limit", "3")
    assert (sum(host.slots for host in options.hosts), options.min_np) == (4, 2)
    assert options.max_restarts == 3
    assert options_of("--max-np", "4").hosts == options_of("-np", "4", "--max-np", "4").hosts


def test_what_is_not_needed_is_said() -> None:
    argv = ["--gloo", "--cycle-time-ms", "0.5", "--autotune", "--autotune-log-file", "a", "--gloo"]
    assert options_of("-np", "2", *argv, "--blacklist-cooldown-range", "1", "9").said == [
        "--gloo changes nothing: ranks meet by rdmarun's agents",
        "--cycle-time-ms changes nothing: there are no cycles: an operation starts once all ranks "
        "want it",
        "--autotune, --autotune-log-file change nothing: `rdmacoll tune` measures before a job, "
        "and nothing does while it trains",
        "--blacklist-cooldown-range changes nothing: no host is left out: a lost rank comes back "
        "where it was",
    ]


# All of horovodrun's options but those for which options_of() is called above and below.
OTHERS = """
    --disable-cache|--start-timeout 9|--network-interfaces eth0|--output-filename out|--verbose
    --ssh-port 22|-p 22|--fusion-threshold-mb 64|--cache-capacity 0|--hierarchical-allreduce
    --no-hierarchical-allreduce|--hierarchical-allgather|--no-hierarchical-allgather
    --torus-allreduce|--no-torus-allreduce|--no-autotune|--autotune-warmup-samples 3
    --autotune-steps-per-sample 10|--autotune-bayes-opt-max-samples 20
    --autotune-gaussian-process-noise 0.8|--min-np 1|--mpi-threads-disable
    --no-mpi-threads-disable|--mpi-args=-v|--num-nccl-streams 2|--thread-affinity 0
    --gloo-timeout-seconds 30|--log-with-timestamp|--log-without-timestamp|--log-hide-timestamp
    -prefix-timestamp|--prefix-output-with-timestamp|--no-log-hide-timestamp|-H localhost:2
    --hosts localhost:2|--mpi|--jsrun
"""


@pytest.mark.parametrize("option", [one.strip() for one in OTHERS.replace("\n", "|").split("|")])
def test_other_options_of_horovodrun(option: str) -> None:
    assert options_of("-np", "2", *option.split()).script == "script.py"


def test_check_build() -> None:
    assert parse(["--horovod", "-cb"], {}, "0").check_build


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--gloo"], "--gloo is an option of horovodrun: give --horovod, too"),
        (["--horovod", "--log-level", "LOUD"], "'LOUD' is none of TRACE, DEBUG, INFO, WARNING"),
        (["--horovod", "--stall-check-warning-time-seconds", "1.5"], "'1.5' is no whole number"),
        (["--horovod", "--timeline-filename", ""], "'' is no name"),
        (["--horovod", "--max-np", "4"], "--max-np 4 with -np 2: rdmarun starts at once all ranks"),
        (
            ["--horovod", "--host-discovery-script", "./find"],
            "--host-discovery-script ./find: rdmarun asks for no hosts while a job runs; name them",
        ),
        (["--horovod", "--slots-per-host", "4"], "--slots-per-host 4: give --nproc-per-node N"),
        (["--horovod", "--binding-args", "a b"], "--binding-args a b: these are mpirun's; give"),
        (["--horovod", "--tcp"], "--tcp: set RDMACOLL_TRANSPORT to tcp with -x, which also"),
        (["--horovod", "-v"], "-v: rdmarun --version says which one it is"),
        (["--horovod", "--elastic-timeout", "0"], "0 is not a positive number"),
        (["--tcp"], "--tcp is an option of horovodrun: give --horovod, too"),
    ],
)
def test_wrong_options(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["-np", "2", *argv, "script.py"], {}, "0")
    assert says in capsys.readouterr().err


SHOW = """
    import os
    names = [f"{group}{what}" for group in ("", "LOCAL_", "CROSS_") for what in ("RANK", "SIZE")]
    print(*(os.environ[f"HOROVOD_{name}"] for name in names))
"""


def test_variables_of_two_hosts_without_the_option(jobs: Jobs) -> None:
    done = jobs.run_script(SHOW, "-np", "3", "-H", "localhost:1,127.0.0.1:2", "--no-tag-output")
    assert sorted(done.stdout.splitlines()) == ["0 3 0 1 0 2", "1 3 0 2 1 2", "2 3 1 2 0 1"]


def test_a_job_in_a_job_has_its_own(jobs: Jobs) -> None:
    """And finds `horovod`, as all that a rank starts."""
    inner = jobs.script(f"import horovod{SHOW}".replace("\n    ", "\n"), "inner.py")
    script = jobs.script(f"""
        import os, subprocess
        if os.environ["HOROVOD_RANK"] == "1":
            command = {[*jobs.rdmarun, "-np", "1", "--no-tag-output", inner]}
            print(subprocess.run(command, capture_output=True, text=True).stdout, end="")
    """)
    done = jobs.run("-np", "2", "--horovod", "--no-tag-output", script)
    assert (done.returncode, done.stdout) == (0, "0 1 0 1 0 1\n"), done.stderr


FINDS = """
    import multiprocessing, os, sys
    import horovod
    def show():
        print(os.environ["RANK"], horovod.__version__, "torch" in sys.modules)
    if __name__ == "__main__":
        show()
        child = multiprocessing.get_context("spawn").Process(target=show)
        child.start()
        child.join()
"""


@pytest.mark.parametrize(
    "options",
    [["-np", "2"], ["-np", "2", "--preload", "json"], TWO_HOSTS],
    ids=["one host", "preload", "two hosts"],
)
def test_scripts_and_their_children_find_it(jobs: Jobs, options: list[str]) -> None:
    done = jobs.run(*options, "--horovod", "--gloo", "--no-tag-output", jobs.script(FINDS))
    assert done.returncode == 0, done.stderr
    wanted = [f"{rank} 0.28.1 False" for rank in (0, 0, 1, 1)]
    assert sorted(done.stdout.splitlines()) == wanted, done.stderr
    assert "rdmarun: --gloo changes nothing: ranks meet by" in done.stderr


@pytest.mark.parametrize("preload", [[], ["--preload", "json"]], ids=["alone", "preload"])
def test_the_users_own_hook_runs_once(jobs: Jobs, preload: list[str]) -> None:
    (jobs.folder / "mine").mkdir()
    jobs.script("open('runs', 'a').write('.')", "mine/sitecustomize.py")
    script = jobs.script(
        "import horovod, os, sitecustomize, sys\n"
        "print('mine' in sitecustomize.__file__, os.environ['PYTHONPATH'], sys.path[1:2])"
    )
    done = jobs.run("-np", "1", *preload, "--horovod", "-x", "PYTHONPATH=mine", script)
    said = f"True {FOLDER}:mine {[str(jobs.folder / 'mine')]}"
    assert (done.returncode, done.stdout) == (0, f"[0]: {said}\n"), done.stderr
    assert (jobs.folder / "runs").read_text() == "."


def test_what_switches_the_hook_off_is_refused(jobs: Jobs) -> None:
    done = jobs.run("-np", "1", "--horovod", jobs.python, "-I", jobs.script(""))
    assert done.returncode == 2
    assert "python -I with --horovod: leave out one of them" in done.stderr
