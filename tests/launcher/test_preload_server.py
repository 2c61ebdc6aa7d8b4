"""--preload: what goes wrong with the process that imports and forks, and who ends what.

Floor: tests.
"""

import shutil
import signal
import sys
from pathlib import Path

import psutil
import pytest
from job_runner import ONE_HOST, TWO_HOSTS, Jobs, both, wait_for

SLEEPS = """
    import os, time
    open("up." + os.environ["RANK"], "w")
    time.sleep(1000)
"""


def server_of(rdmarun: int) -> psutil.Process:
    """The agent's child that has no rank's variables."""
    agent = psutil.Process(rdmarun).children()[0].children()[0]
    (server,) = [
        child
        for child in agent.children()
        if "RANK" not in child.environ() and "RDMACOLL_PRELOAD" in child.environ()
    ]
    return server


WRONG = {
    "jsom": ("--preload jsom: No module named 'jsom'", None, 0),
    "json.jsom": ("--preload json.jsom: No module named 'json.jsom'", None, 0),
    "raises": ("--preload raises: ValueError: bad", "raise ValueError('bad')", 1),
    "needs": ("--preload needs: No module named 'jsom'", "import jsom", 1),
    "leaves": ("--preload leaves: SystemExit: 3", "import sys; sys.exit(3)", 1),
    "threads": (
        "--preload threads: it has left 1 thread behind (beat), which forked ranks would lack",
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=[1000], name='beat', daemon=True).start()",
        0,
    ),
    "torch.cuda": (
        "--preload torch.cuda: it has begun to use CUDA when it was imported, which then fails "
        "in forked ranks",
        "def _is_in_bad_fork(): return True",
        0,
    ),
}


@both
@pytest.mark.parametrize("name", WRONG)
def test_a_module_that_cannot_be_preloaded(jobs: Jobs, options: list[str], name: str) -> None:
    said, text, tracebacks = WRONG[name]
    if text is not None:
        path = jobs.folder / (name.replace(".", "/") + ".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        if path.parent != jobs.folder:
            (path.parent / "__init__.py").touch()
    script = jobs.script("open('started', 'w')")
    done = jobs.run(*options, "--preload", f"json,{name}", script)
    assert done.returncode == 1
    hosts = 1 if "-H" not in options else 2
    assert 1 <= done.stderr.count(f": {said}\n") <= hosts, done.stderr
    assert "could not start its ranks" in done.stderr
    assert done.stderr.count("Traceback") <= tracebacks * hosts
    assert not jobs.files("started")


@pytest.mark.parametrize("name", ["", "a,,b", "to-rch", "torch.", "../x"])
def test_what_is_no_name(jobs: Jobs, name: str) -> None:
    done = jobs.run("-np", "1", f"--preload={name}", jobs.script("pass"))
    assert done.returncode == 2
    assert "argument --preload: '" in done.stderr and "is no name of a module" in done.stderr


@pytest.mark.parametrize("flag", ["-E", "-I", "-S", "-OE"])
def test_a_python_that_runs_no_hooks_is_refused(jobs: Jobs, flag: str) -> None:
    script = jobs.script("open('started', 'w')")
    done = jobs.run("-np", "1", "--preload", "json", sys.executable, "-W", "ignore", flag, script)
    assert done.returncode == 2
    assert f"rdmarun: python {flag} with --preload: leave out one of them\n" in done.stderr
    assert not jobs.files("started")


def test_a_server_that_cannot_begin_runs_no_script(jobs: Jobs) -> None:
    """Only the ranks' python finds this package."""
    (jobs.folder / "other/rdmacoll").mkdir(parents=True)
    jobs.script("raise ImportError('broken')", "other/rdmacoll/__init__.py")
    script = jobs.script("open('started', 'w')")
    path = f"PYTHONPATH={jobs.folder}/other"
    done = jobs.run("-np", "1", "-x", path, "--preload", "json", script)
    assert done.returncode == 1
    assert "ImportError: broken" in done.stderr
    assert "the process of --preload json (pid " in done.stderr
    assert not jobs.files("started")


def test_no_rank_is_forked_if_a_file_cannot_be_opened(jobs: Jobs) -> None:
    (jobs.folder / "logs").touch()
    script = jobs.script("open('started', 'w')")
    done = jobs.run("-np", "1", "--preload", "json", "--output-filename", "logs", script)
    assert done.returncode == 1
    assert "logs is no folder" in done.stderr
    assert not jobs.files("started")


def test_imports_that_do_not_end(jobs: Jobs) -> None:
    jobs.script("import time; time.sleep(1000)", "slow.py")
    done = jobs.run("-np", "1", "--start-timeout", "1", "--preload", "slow", jobs.script("pass"))
    assert done.returncode == 1
    assert (
        "--preload slow is not through with its imports after 1 s (--start-timeout)" in done.stderr
    )


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_is_killed_while_it_imports(jobs: Jobs, sig: signal.Signals) -> None:
    jobs.script("import time; open('importing', 'w'); time.sleep(1000)", "slow.py")
    process = jobs.start("-np", "2", "--preload", "slow", jobs.script(SLEEPS))
    wait_for(lambda: bool(jobs.files("importing")), "the import")
    server = server_of(process.pid)
    server.send_signal(sig)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    killed = f"--preload slow (pid {server.pid}) was killed by {sig.name}"
    assert killed in err


@pytest.mark.parametrize("role", ["rdmarun", "subreaper", "agent"])
@pytest.mark.parametrize("when", ["importing", "up.0"])
def test_the_end_of_any_other_ends_all(jobs: Jobs, role: str, when: str) -> None:
    wait = "time.sleep(1000)" if when == "importing" else "pass"
    jobs.script(f"import time; open('importing', 'w'); {wait}", "slow.py")
    elastic = ["--elastic", "--min-np", "1", "--max-restarts", "1"]  # the server stays
    process = jobs.start("-np", "2", *elastic, "--preload", "slow", jobs.script(SLEEPS))
    wait_for(lambda: bool(jobs.files(when)), when)
    chain = [psutil.Process(process.pid)]
    for _ in range(2):
        chain.append(chain[-1].children()[0])
    chain[["rdmarun", "subreaper", "agent"].index(role)].kill()
    process.communicate(timeout=60)
    assert process.returncode != 0
    jobs.assert_none_left()


@pytest.mark.parametrize("when", ["importing", "up.0"])
def test_ctrl_c(jobs: Jobs, when: str) -> None:
    wait = "time.sleep(1000)" if when == "importing" else "pass"
    jobs.script(f"import time; open('importing', 'w'); {wait}", "slow.py")
    process = jobs.start("-np", "2", "--preload", "slow", jobs.script(SLEEPS))
    wait_for(lambda: bool(jobs.files(when)), when)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT, err
    assert "stopped by SIGINT" in err


def test_a_rank_that_is_killed_ends_the_job(jobs: Jobs) -> None:
    script = """
        import os, signal, sys, time
        if os.environ["RANK"] == "1":
            print("last words", file=sys.stderr)
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1000)
    """
    done = jobs.run("-np", "3", "--preload", "json", jobs.script(script))
    assert done.returncode == 128 + signal.SIGKILL
    assert "was killed by SIGKILL; the last lines of its stderr:\n" in done.stderr
    assert "rdmarun:     last words\n" in done.stderr


def test_the_server_does_not_outlive_the_start(jobs: Jobs) -> None:
    """If no rank can be started again, that is."""
    process = jobs.start("-np", "2", "--preload", "json", jobs.script(SLEEPS))
    wait_for(lambda: len(jobs.files("up.*")) == 2, "the ranks")
    agent = psutil.Process(process.pid).children()[0].children()[0]
    ranks_and_store = 3
    wait_for(lambda: len(agent.children()) == ranks_and_store, "the end of the server")
    process.terminate()
    process.communicate(timeout=60)


@both
def test_all_ranks_are_started_again(jobs: Jobs, options: list[str]) -> None:
    script = jobs.script("""
        import os, sys
        attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
        print("attempt", attempt, flush=True)
        sys.exit(5 if attempt < 2 and os.environ["RANK"] == "1" else 0)
    """)
    done = jobs.run(*options, "--max-restarts", "3", "--preload", "json", script)
    assert done.returncode == 0, done.stderr
    assert {f"[1]: attempt {n}" for n in range(3)} <= set(done.stdout.splitlines())


# Rank 1 dies at its first start, once it may. The other one waits until it is back.
COMES_BACK = """
    import os, signal, sys, time
    from pathlib import Path
    from client import exchange
    number = os.environ["TORCHELASTIC_RESTART_COUNT"]
    print("start", number, os.environ["RDMACOLL_ELASTIC"], counted.__name__, flush=True)
    if number == "0":
        exchange(b"payload")
        if os.environ["RANK"] == "1":
            while not Path("go").exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        Path("up." + os.environ["RANK"]).touch()
        while not Path("back").exists():
            time.sleep(0.01)
    Path("back").touch()
"""
ELASTIC = ["--min-np", "1", "--max-restarts", "1", "--elastic"]


@pytest.mark.parametrize(
    ("options", "killed"),
    [(ONE_HOST, False), (TWO_HOSTS, False), (ONE_HOST, True)],
    ids=["one host", "two hosts", "killed server"],
)
def test_a_rank_is_started_again_alone(jobs: Jobs, options: list[str], killed: bool) -> None:
    """By the same process; where that is gone, by another that imports again."""
    jobs.script("import os; open(f'by.{os.getpid()}', 'w')", "counted.py")
    shutil.copy(Path(__file__).with_name("client.py"), jobs.folder)
    script = jobs.script("    import counted" + COMES_BACK)
    process = jobs.start(*options, *ELASTIC, "--preload", "counted", script)
    wait_for(lambda: bool(jobs.files("up.0")), "the ranks")
    if killed:
        victim = server_of(process.pid)
        victim.kill()
        wait_for(lambda: not victim.is_running(), "its end")
    (jobs.folder / "go").touch()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    starts = ["[0]: start 0 starts counted", "[1]: start 0 starts counted"]
    assert sorted(out.splitlines()) == [*starts, "[1]: start 1 joins counted"]
    hosts = 1 if "-H" not in options else 2
    assert len(jobs.files("by.*")) == hosts + killed


@pytest.mark.nightly
def test_64_ranks(jobs: Jobs) -> None:
    shutil.copy(Path(__file__).with_name("client.py"), jobs.folder)
    script = jobs.script("from client import RANK, exchange; print(len(exchange(b'%d' % RANK)))")
    done = jobs.run("-np", "64", "--preload", "json", script)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(f"[{rank}]: 64" for rank in range(64))
