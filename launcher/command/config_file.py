"""--config-file: options of rdmarun in a file of TOML, by their long names.

    nproc-per-node = 4
    hosts = "node1,node2"
    env = ["OMP_NUM_THREADS=2", "HOME"]
    verbose = true

Floor: launcher/command. Thread: any.
"""

import argparse
import difflib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

FLAG = "--config-file"
NOT_IN_IT = (FLAG, "--help", "--version")
# Of each the command line's takes the place of any in the file.
INSTEAD = ("hosts", "hostfile", "standalone"), ("np", "nproc_per_node")


class ConfigError(ValueError):
    """The file cannot be used; the message says why and what would be right."""


def parse_with_file(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """What the command line says goes before what the file says. ConfigError."""
    args = parser.parse_args(argv)
    if args.config_file is None:
        return args
    options = parser._option_string_actions
    words = _read(args.config_file, options)
    name, parser.prog = parser.prog, f"{parser.prog}: {FLAG} {args.config_file}"
    parser.parse_args(words)  # by itself first, so that errors name the file
    parser.prog = name
    for names in INSTEAD:
        if any(getattr(args, name) not in (None, False) for name in names):
            flags = {flag for flag, action in options.items() if action.dest in names}
            words = [word for word in words if word.partition("=")[0] not in flags]
    return parser.parse_args([*words, *argv])


def _read(path: str, options: Mapping[str, argparse.Action]) -> list[str]:
    """What it says, as arguments; options: the parser's, by their flags."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{FLAG} {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{FLAG} {path}: is not UTF-8 text") from None
    try:
        tomllib = importlib.import_module("tomllib")
    except ImportError:
        raise ConfigError(f"{FLAG} {path}: needs Python 3.11, whose tomllib reads it") from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f'{FLAG} {path}: {error}; it is TOML, a line is `name = 4`, `name = "text"`, '
            "`name = true` or `name = [...]`, by the long name of an option"
        ) from None
    try:
        return [word for key, value in content.items() for word in _words(key, value, options)]
    except ConfigError as error:
        raise ConfigError(f"{FLAG} {path}: {error}") from None


def _words(key: str, value: Any, options: Mapping[str, argparse.Action]) -> Iterator[str]:
    flag = f"--{key}"
    action = options.get(flag)
    if action is None or flag in NOT_IN_IT:
        names = [name[2:] for name in options if name[:2] == "--" and name not in NOT_IN_IT]
        near = difflib.get_close_matches(key, names, n=1)
        hint = f"did you mean {near[0]}?" if near else "rdmarun --help has their long names"
        raise ConfigError(f"{key} is no option that can be in it; {hint}")
    if isinstance(value, bool):
        yield from _switch(key, value, action, options)
    elif action.nargs == 0:
        raise ConfigError(f"{key} = {value!r}: it is true or false")
    elif isinstance(value, (str, int, float)):
        yield f"{flag}={value}"
    elif not isinstance(value, list) or not all(isinstance(one, (str, int)) for one in value):
        raise ConfigError(f"{key}: give a number, a text, true or false, or a list of texts")
    elif isinstance(action.nargs, int):
        yield from [flag, *map(str, value)]
    elif isinstance(action, argparse._AppendAction):
        yield from (f"{flag}={one}" for one in value)
    else:
        yield f"{flag}={','.join(map(str, value))}"


def _switch(
    key: str, value: bool, action: argparse.Action, options: Mapping[str, argparse.Action]
) -> Iterator[str]:
    if action.nargs != 0:
        raise ConfigError(f"{key} = {str(value).lower()}: it takes a value")
    flag = f"--{key}" if value else f"--no-{key}"
    if flag in options:  # else it is false already
        yield flag
