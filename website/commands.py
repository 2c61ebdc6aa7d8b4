"""The page of commands: what each says when it is asked for --help.

Floor: website/. Runs the commands of the environment that builds the site.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TITLE = "# Commands\n\nEvery command, and what it says of itself with `--help`.\n"
# Those that no list of subcommands names.
COMMANDS = ["rdmarun", "rdmacoll", "rdmacoll bench transfer", "rdmacoll bench models"]
COMMANDS += ["python -m rdmacoll.horovod"]
SUBCOMMAND = re.compile(r"^    (\w+)  ", re.MULTILINE)
COLUMNS = "98"


def page() -> str:
    helps = {name: text for command in COMMANDS for name, text in _helps(command)}
    parts = [f"## {name}\n\n```text\n{text}```\n" for name, text in helps.items()]
    return "\n".join([TITLE, *parts])


def _helps(command: str) -> Iterator[tuple[str, str]]:
    """The help of a command and of its subcommands, each with its name."""
    text = _help(command)
    yield command, text
    if " command ..." in text.partition("\n")[0]:
        for name in SUBCOMMAND.findall(text):
            yield from _helps(f"{command} {name}")


def _help(command: str) -> str:
    program, *arguments = command.split()
    path = Path(sys.executable).parent / program
    said = subprocess.run(
        [path, *arguments, "--help"],
        env=os.environ | {"COLUMNS": COLUMNS},
        capture_output=True,
        text=True,
        timeout=120,
    )
    if said.returncode != 0:
        raise RuntimeError(f"{command} --help ended with {said.returncode}:\n{said.stderr}")
    return said.stdout
