"""`python -m rdmacoll.horovod`: a script sees there what it would see without it, and `horovod`.

Floor: tests.
"""

import subprocess
import sys
from pathlib import Path

import pytest

# Says all that a script can see of how it was started, but what has been imported.
SHOW = """
import os, sys
shown = (__name__, __file__, __package__, __cached__, __doc__, __spec__ and __spec__.name)
print(sys.argv, sys.path, *shown, type(__loader__).__name__, type(__builtins__).__name__)
print(sys.modules["__main__"].__dict__ is globals(), os.getcwd())
"""


def run(folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *args], cwd=folder, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    "args",
    [["scripts/shown.py", "-m", "--flag"], ["link.py"], ["-m", "scripts.shown", "a b"]],
    ids=["script", "link", "module"],
)
def test_a_script_sees_the_same(tmp_path: Path, args: list[str]) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/shown.py").write_text(SHOW)
    (tmp_path / "link.py").symlink_to("scripts/shown.py")
    alone = run(tmp_path, *args)
    ours = run(tmp_path, "-m", "rdmacoll.horovod", *args)
    assert alone.returncode == ours.returncode == 0, alone.stderr + ours.stderr
    assert alone.stdout == ours.stdout


def test_it_finds_horovod_and_so_do_its_children(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("""
import atexit, multiprocessing, pickle, sys
import horovod.torch, rdmacoll.horovod
class Mine: pass
def shown(): print(horovod.torch is rdmacoll.horovod)
if __name__ == "__main__":
    shown()
    child = multiprocessing.get_context("spawn").Process(target=shown)
    child.start()
    child.join()
    atexit.register(lambda: print(type(pickle.loads(pickle.dumps(Mine()))) is Mine))
    sys.exit(3)
""")
    done = run(tmp_path, "-m", "rdmacoll.horovod", "script.py")
    assert (done.returncode, done.stdout, done.stderr) == (3, "True\n" * 3, "")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["none.py"], "none.py: there is no such script (a module is given with -m)"),
        (["-m", "none.such"], "-m none.such: there is no such module (a script is given without"),
        ([], "what shall run? give a python script, or -m module"),
    ],
)
def test_what_cannot_be_run(tmp_path: Path, args: list[str], says: str) -> None:
    done = run(tmp_path, "-m", "rdmacoll.horovod", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rdmacoll.horovod: {says}")
    assert "Traceback" not in done.stderr
