"""What each rank's python is to run, as the command line of rdmarun names it.

Floor: launcher/command. Thread: any.
"""

import re
import shutil
import sys
from pathlib import Path

TAKE_A_VALUE = ("-W", "-X", "--check-hash-based-pycs")
INTERPRETER = re.compile(r"(?:.*/)?python(?:\d+(?:\.\d+)?)?")


class ScriptError(ValueError):
    """The ranks cannot run it; the message says what to give instead."""


def python_arguments(script: str, args: list[str], is_module: bool) -> list[str]:
    """The arguments of each rank's python.

    `python train.py`, as mpirun would have it, means the same as `train.py`: the ranks run in the
    python of rdmarun, which has to be that one. Raises ScriptError.
    """
    if is_module:
        return ["-m", script, *args]
    if INTERPRETER.fullmatch(script) and shutil.which(script) is not None:
        _check_interpreter(script)
        if not args:
            raise ScriptError(f"{script}: what shall it run? give a python script behind it")
        return args
    if not Path(script).is_file():
        raise ScriptError(f"{script}: there is no such script (a module is started with -m)")
    return [script, *args]


def _check_interpreter(script: str) -> None:
    """By its folder: a virtual environment's python is a link to the one that it was made with."""
    found = Path(shutil.which(script) or script).absolute()
    own = Path(sys.executable).absolute()
    if found.parent.resolve() != own.parent.resolve():
        raise ScriptError(
            f"{script} is {found}, but the ranks run in rdmarun's own python, {own}: use the "
            f"rdmarun of that python, or leave {script} out"
        )


def check_start_up(argv: list[str], option: str) -> None:
    """--preload and --horovod hook into python's start-up; these options of python's would switch
    that off. Raises ScriptError."""
    arguments = iter(argv)
    for argument in arguments:
        if not argument.startswith("-") or argument in ("-m", "-c"):
            return
        if argument in TAKE_A_VALUE:
            next(arguments, None)
        elif not argument.startswith(("--", "-W", "-X")) and set(argument) & set("EIS"):
            raise ScriptError(f"python {argument} with {option}: leave out one of them")
