"""--preload: a rank that is forked is to everybody what a rank of its own is.

So most tests run a script both ways and compare all that is said. What goes wrong with the
process that forks: test_preload_server.py. With torch: tests/torch/test_preload.py.
Floor: tests.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from job_runner import Jobs

PRELOAD = ["--preload", "json,heavy"]

# Says all that a process can see of itself, but what differs from job to job.
SHOW = """
    import ctypes, heavy, json, os, resource, signal, sys, threading
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    death = ctypes.c_int()
    libc.prctl(2, ctypes.byref(death))
    jobs_own = {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "RDMACOLL_AGENT"}
    masks = ("SigBlk", "SigIgn", "SigCgt")
    signals = [line for line in open("/proc/self/status") if line.startswith(masks)]
    spec = __spec__ and __spec__.name
    print(json.dumps({
        "environment": {k: v for k, v in os.environ.items() if k not in jobs_own},
        "C": [str(libc.getenv(name)) for name in (b"RANK", b"PYTHONPATH", b"UNWANTED")],
        "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "cwd": os.getcwd(),
        "main": [__name__, __file__, spec, __builtins__.__name__, __cached__, __doc__],
        "globals": sorted(k for k in globals() if k.startswith("__")),
        "is main": sys.modules["__main__"].__dict__ is globals(),
        "session": os.getsid(0) == os.getpid() == os.getpgid(0),
        "parent": int(os.environ["RDMACOLL_AGENT"].split("-")[1]) == os.getppid(),
        "dies with it": death.value, "signals": signals, "python's": [
            str(signal.getsignal(sig)) for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)
        ],
        "descriptors": sorted(set(os.listdir("/proc/self/fd")) - {"3"}),
        "standard": [os.readlink(f"/proc/self/fd/{fd}").partition(":")[0] for fd in range(3)],
        "streams": [str(sys.stdin), str(sys.stdout), str(sys.stderr), sys.stdin.read()],
        "buffered": [sys.stdout.line_buffering, sys.stdout.write_through],
        "limits": [resource.getrlimit(n) for n in range(15)], "umask": os.umask(0),
        "threads": [len(os.listdir("/proc/self/task")), threading.current_thread().name],
        "stack": sys._getframe().f_back is None, "flags": str(sys.flags),
        "command": open("/proc/self/cmdline").read(), "name": open("/proc/self/comm").read(),
    }))
"""


@pytest.fixture(autouse=True)
def heavy(jobs: Jobs) -> None:
    """A module beside the scripts that changes the environment when it is imported."""
    jobs.script("import os; os.environ['HEAVY'] = '1'; del os.environ['UNWANTED']", "heavy.py")


def both_ways(jobs: Jobs, *args: str) -> list["subprocess.CompletedProcess[str]"]:
    return [jobs.run(*options, *args, UNWANTED="") for options in ([], PRELOAD)]


def by_rank(output: str) -> list[str]:
    return sorted(output.splitlines())


@pytest.mark.parametrize(
    ("how", "world"),
    [
        ("script", "1"),
        ("script", "2"),
        ("script", "4"),
        ("relative", "2"),
        ("module", "2"),
        ("optimized", "1"),
        ("safe path", "1"),
    ],
)
def test_a_rank_sees_the_same(jobs: Jobs, how: str, world: str, tmp_path: Path) -> None:
    script = jobs.script(SHOW, "shown.py")
    command = {
        "script": [script],
        "relative": ["shown.py"],
        "module": ["-m", "shown"],
        "optimized": [sys.executable, "-O", "-X", "faulthandler", "shown.py"],
        "safe path": ["-x", f"PYTHONPATH={tmp_path}", "-x", "PYTHONSAFEPATH=1", script],
    }[how]
    alone, forked = both_ways(jobs, "-np", world, "-x", "ODD=a\nb=\udcff", *command, "a", "--np")
    assert alone.returncode == forked.returncode == 0, alone.stderr + forked.stderr
    for before, after in zip(by_rank(alone.stdout), by_rank(forked.stdout), strict=True):
        first, second = (json.loads(line.partition(": ")[2]) for line in (before, after))
        # Of the socket that the process had, and of what it had read, nothing may be left.
        assert first == second, {k: (first[k], second[k]) for k in first if first[k] != second[k]}


ENDS = {
    "status": "sys.exit(3)",
    "message": "sys.exit('said at the end')",
    "none": "sys.exit()",
    "true": "sys.exit(True)",
    "error": "def f():\n    raise ValueError('wrong')\nf()",
    "group": "raise ExceptionGroup('several', [ValueError('one')])",
    "interrupted": "raise KeyboardInterrupt",
    "signal": "os.kill(os.getpid(), signal.SIGTERM)",
    "abort": "os.abort()",
    "hook": "sys.excepthook = lambda *a: print('hook', a[2].tb_next)\nraise ValueError",
    "syntax": "exec('a b')",
    "atexit": "atexit.register(print, 'at exit', end='')\nprint('no flush', end='')",
    "atexit and error": "atexit.register(print, 'at exit')\nraise ValueError",
    "thread": "threading.Timer(0.1, print, ['thread']).start()",
    "hard": "os._exit(7)",
    "finalizer": "class A:\n    def __del__(self): print('del')\na = A()",
    "stack": "faulthandler.dump_traceback()\ntraceback.print_stack()",
    "fault": "faulthandler.enable()\nos.kill(os.getpid(), signal.SIGSEGV)",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_rank_ends_the_same(jobs: Jobs, end: str) -> None:
    (jobs.folder / "script.py").write_text(
        "import atexit, faulthandler, os, signal, sys, threading, traceback\n" + ENDS[end]
    )
    alone, forked = both_ways(jobs, "-np", "1", "-x", "PYTHONUNBUFFERED=", "script.py")
    assert alone.returncode == forked.returncode, alone.stderr + forked.stderr
    assert alone.stdout == forked.stdout
    assert said(alone.stderr) == said(forked.stderr)


def test_what_a_module_holds_is_finalized(jobs: Jobs) -> None:
    held = "class Held:\n    def __del__(self): print('let go')\nheld = Held()"
    (jobs.folder / "holds.py").write_text(held)
    script = jobs.script("import holds")
    done = jobs.run("-np", "2", "--preload", "holds", script)
    assert by_rank(done.stdout) == ["[0]: let go", "[1]: let go"]
    assert "let go" not in done.stderr


def said(errors: str) -> str:
    """Without numbers of processes and threads."""
    return re.sub(r"pid \d+|0x[0-9a-f]+|Extension modules: .*", "", errors)


@pytest.mark.parametrize("world", ["1", "8", "9"])  # 8 are forked together
def test_modules_are_imported_once(jobs: Jobs, world: str) -> None:
    jobs.script("import os; print('imported'); open(f'by.{os.getpid()}', 'w')", "counted.py")
    script = jobs.script("import counted; print(counted.__name__)")
    options = ["--preload", "counted", "--preload", "json", "-x", "PYTHONUNBUFFERED="]
    done = jobs.run("-np", world, *options, script)
    assert by_rank(done.stdout) == [f"[{rank}]: counted" for rank in range(int(world))]
    assert done.stderr.count("imported") == 1
    assert len(jobs.files("by.*")) == 1


def test_the_users_own_hook_runs_first(jobs: Jobs) -> None:
    (jobs.folder / "mine").mkdir()
    jobs.script("import builtins; builtins.hooked = 'hooked'", "mine/sitecustomize.py")
    jobs.script("said = hooked", "counted.py")
    script = jobs.script(
        "import counted, sitecustomize; print(counted.said, 'mine' in sitecustomize.__file__)"
    )
    done = jobs.run("-np", "1", "--preload", "counted", script, PYTHONPATH="mine")
    assert (done.returncode, done.stdout) == (0, "[0]: hooked True\n"), done.stderr


def test_random_numbers_are_each_ranks_own(jobs: Jobs) -> None:
    script = jobs.script("""
        import multiprocessing, numpy, random, uuid
        key = multiprocessing.current_process().authkey.hex()
        for number in random.random(), numpy.random.rand(), key, uuid.uuid4():
            print(number)
    """)
    names = "random,numpy,numpy.random,multiprocessing,uuid"
    done = jobs.run("-np", "4", "--no-tag-output", "--preload", names, script)
    assert done.returncode == 0, done.stderr
    assert len(set(done.stdout.splitlines())) == 16


def test_others_see_a_ranks_variables(jobs: Jobs) -> None:
    """As `rdmacoll debug dump` does."""
    script = jobs.script("""
        import os
        shown = dict(v.split("=", 1) for v in open("/proc/self/environ").read().split("\\0") if v)
        names = ["RANK", "MASTER_PORT", "RDMACOLL_AGENT", "TORCHELASTIC_RUN_ID", "OTHER"]
        print([shown[name] == os.environ[name] for name in names])
    """)
    done = jobs.run("-np", "2", *PRELOAD, script, OTHER="kept", UNWANTED="")
    assert by_rank(done.stdout) == [f"[{rank}]: {[True] * 5}" for rank in range(2)], done.stderr


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(jobs: Jobs, method: str) -> None:
    script = jobs.script("""
        import multiprocessing, sys
        def square(number):
            return number * number
        if __name__ == "__main__":
            with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
                print(pool.map(square, range(4)))
    """)
    done = jobs.run("-np", "2", "--preload", "multiprocessing.pool", script, method)
    assert by_rank(done.stdout) == [f"[{rank}]: [0, 1, 4, 9]" for rank in range(2)], done.stderr


def test_files_of_output(jobs: Jobs) -> None:
    script = jobs.script("import os, sys; print('out'); print(os.getpid(), file=sys.stderr)")
    done = jobs.run("-np", "2", *PRELOAD, "--output-filename", "logs", script, UNWANTED="")
    assert done.returncode == 0, done.stderr
    assert (jobs.folder / "logs/rank.1/stdout").read_text() == "out\n"
    assert (jobs.folder / "logs/rank.0/stderr").read_text().strip() in done.stderr


def test_every_host_imports_for_itself(jobs: Jobs) -> None:
    jobs.script("import os; print('imported')", "counted.py")
    hosts = "localhost:2,127.0.0.1:1"
    script = jobs.script("import os; print(os.environ['GROUP_RANK'], os.environ['LOCAL_RANK'])")
    done = jobs.run("-np", "3", "-H", hosts, "--preload", "counted", "--verbose", script)
    assert done.returncode == 0, done.stderr
    assert by_rank(done.stdout) == ["[0]: 0 0", "[1]: 0 1", "[2]: 1 0"]
    assert done.stderr.count("imported") == 2
    assert len(re.findall(r"host \S+: ranks ", done.stderr)) == 2
