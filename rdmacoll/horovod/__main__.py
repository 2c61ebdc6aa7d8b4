"""`python -m rdmacoll.horovod train.py`: runs a script of Horovod's as it is, on rdmacoll.

The script runs as python itself would run it, as `__main__`, with its own sys.argv and sys.path.
Processes that it starts find rdmacoll as `horovod`, too.
Floor: rdmacoll/horovod. Thread: the main one.
"""

import builtins
import importlib.util
import os
import runpy
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType

from rdmacoll.base.horovod_folder import with_folder

from .alias import install

USAGE = """\
usage: python -m rdmacoll.horovod script.py [args ...]
       python -m rdmacoll.horovod -m module [args ...]

Runs a script that imports horovod.torch on rdmacoll. It is one process: rdmarun --horovod, or
another launcher that is given this command, starts one for each rank."""


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return
    is_module = arguments[:1] == ["-m"]
    del arguments[: int(is_module)]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(_wrong(f"what shall run? give a python script, or -m module\n{USAGE}"))
    os.environ["PYTHONPATH"] = with_folder(os.environ.get("PYTHONPATH"))
    install()
    sys.argv[:] = arguments
    sys.exit(_run_module(arguments[0]) if is_module else _run_script(arguments[0]))


def _run_module(name: str) -> int:
    """sys.path is as python has made it for -m, and runpy sees to sys.argv[0]."""
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # what a package above it wants
        found = None
    if found is None:
        return _wrong(f"-m {name}: there is no such module (a script is given without -m)")
    runpy.run_module(name, {"__builtins__": builtins}, run_name="__main__", alter_sys=True)
    return 0


def _run_script(script: str) -> int:
    """Not by runpy, which would change sys.argv[0], and give `__main__` back at the end."""
    path = os.path.abspath(script)
    if not os.path.isfile(path):
        return _wrong(f"{script}: there is no such script (a module is given with -m)")
    if not getattr(sys.flags, "safe_path", False):  # python 3.11
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    module = sys.modules["__main__"] = ModuleType("__main__")
    loader = SourceFileLoader("__main__", path)
    module.__dict__.update(__file__=path, __cached__=None, __loader__=loader, __builtins__=builtins)
    exec(loader.source_to_code(loader.get_data(path), path), module.__dict__)
    return 0


def _wrong(why: str) -> int:
    print(f"rdmacoll.horovod: {why}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
