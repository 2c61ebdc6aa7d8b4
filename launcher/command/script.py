"""What each rank is to run, as the command line of rdmarun names it: python on a script or on a
module, or a command.

Floor: launcher/command. Thread: any.
"""

import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TAKE_A_VALUE = ("-W", "-X", "--check-hash-based-pycs")
INTERPRETER = re.compile(r"(?:.*/)?python(?:\d+(?:\.\d+)?)?")
OF_PYTHON = (".py", ".pyc", ".pyz")


class ScriptError(ValueError):
    """The ranks cannot run it; the message says what to give instead."""


@dataclass(frozen=True)
class Program:
    argv: list[str]
    is_command: bool  # argv is whole; else it is what python gets


def program_of(
    script: str, args: list[str], module: bool, no_python: bool, environ: Mapping[str, str]
) -> Program:
    """A name says by itself which of them it is, so that nobody has to try: `train.py` is python's,
    and what a shell would run is a command. `python train.py`, as mpirun would have it, means the
    same as `train.py`: the ranks run in the python of rdmarun, which has to be that one.

    environ: of the ranks. Raises ScriptError.
    """
    if module:
        if no_python:
            raise ScriptError("-m with --no-python: only python runs modules; leave out one")
        return Program(["-m", script, *args], is_command=False)
    if no_python:
        return _command(script, args, environ)
    if INTERPRETER.fullmatch(script) and shutil.which(script) is not None:
        _check_interpreter(script)
        if not args:
            raise ScriptError(f"{script}: what shall it run? give a python script behind it")
        return Program(args, is_command=False)
    if not script.endswith(OF_PYTHON):
        return _command(script, args, environ)
    if not Path(script).is_file():
        raise ScriptError(f"{script}: there is no such script (a module is started with -m)")
    return Program([script, *args], is_command=False)


def _command(script: str, args: list[str], environ: Mapping[str, str]) -> Program:
    """By the name that was given, so that each host finds its own."""
    if shutil.which(script, path=environ.get("PATH")) is not None:
        return Program([script, *args], is_command=True)
    if shutil.which(f"./{script}") is not None:  # mpirun looks there, too
        return Program([f"./{script}", *args], is_command=True)
    if Path(script).is_file():
        name = shlex.quote(script)
        raise ScriptError(
            f"{script} is neither executable nor a python script by its name (.py): "
            f"chmod +x {name}, or give `python {name}`"
        )
    if Path(script).is_dir():
        raise ScriptError(
            f"{script} is a folder: give a script in it, or `python {shlex.quote(script)}` where "
            "it has a __main__.py"
        )
    raise ScriptError(
        f"{script}: there is no such script, and no such command on PATH (a module is started "
        "with -m)"
    )


def _check_interpreter(script: str) -> None:
    """By its folder: a virtual environment's python is a link to the one that it was made with."""
    found = Path(shutil.which(script) or script).absolute()
    own = Path(sys.executable).absolute()
    if found.parent.resolve() != own.parent.resolve():
        raise ScriptError(
            f"{script} is {found}, but the ranks run in rdmarun's own python, {own}: use the "
            f"rdmarun of that python, or leave {script} out, or give --no-python"
        )


def check_start_up(program: Program, preload: bool, horovod: bool) -> None:
    """--preload and --horovod hook into python's start-up; these options of python's would switch
    that off. A command cannot be forked, but what it starts finds `horovod`. Raises ScriptError."""
    if program.is_command:
        if preload:
            raise ScriptError(
                f"--preload with the command {program.argv[0]}: only python scripts are forked; "
                "leave it out"
            )
        return
    if preload or horovod:
        _check_switches(program.argv, "--preload" if preload else "--horovod")


def _check_switches(argv: list[str], option: str) -> None:
    arguments = iter(argv)
    for argument in arguments:
        if not argument.startswith("-") or argument in ("-m", "-c"):
            return
        if argument in TAKE_A_VALUE:
            next(arguments, None)
        elif not argument.startswith(("--", "-W", "-X")) and set(argument) & set("EIS"):
            raise ScriptError(f"python {argument} with {option}: leave out one of them")
