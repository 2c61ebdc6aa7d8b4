"""docs/ENVIRONMENT.md against the code: all variables, with their defaults and NCCL's names."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/ENVIRONMENT.md").read_text()
# What declares settings; beside each lies the .cc that reads them.
DECLARERS = [ROOT / "csrc/base/config.h", *ROOT.glob("csrc/transport/*/settings/settings.h")]
READERS = [
    *(path.with_suffix(".cc") for path in DECLARERS),
    ROOT / "setup.py",
    ROOT / "tests/conftest.py",
]
READER_FOLDERS = ["rdmacoll", "launcher", "tests/sim"]


def variables_of_the_page() -> dict[str, tuple[str, str]]:
    """Name -> default and the rest of its row."""
    found = {}
    for row in re.findall(r"^\| (`.*) \|$", PAGE, re.M):
        names, default, *rest = row.split(" | ")
        for name in re.findall(r"`(RDMACOLL_\w+)`", names):
            found[name] = (default.partition("` (")[0].strip("`"), " | ".join(rest))
    return found


def variables_of_the_code() -> set[str]:
    files = list(READERS)
    for folder in READER_FOLDERS:
        files += [path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".cc"}]
    return {
        name
        for path in files
        for name in re.findall(r'"(RDMACOLL_[A-Z_]*[A-Z])"', path.read_text())
    }


def declared_settings() -> dict[str, tuple[str, str]]:
    """Name -> default and NCCL's name: a comment names as many variables as fields follow it."""
    text = "\n".join(path.read_text() for path in DECLARERS)
    block = r"((?:^ *// .*\n)+)((?:^ *(?!static)[\w:]+ \w+(?: = .*)?;\n|^ *static .*\n)+)"
    found: dict[str, tuple[str, str]] = {}
    for comment, fields in re.findall(block, text, re.M):
        names = re.findall(r"(RDMACOLL_\w+)(?: \[(NCCL_\w+)\])?[:;,.]", comment)
        values = re.findall(r"^ *(?!static)[\w:]+ \w+(?: = (.*))?;$", fields, re.M)
        if names:
            assert len(names) == len(values), (names, values)
            found |= {n: (plain(v), nccl) for (n, nccl), v in zip(names, values, strict=True)}
    return found


def plain(value: str) -> str:
    """A C++ initializer as the page has it."""
    if shifted := re.fullmatch(r"(\d+)u << (\d+)", value):
        return str(int(shifted[1]) << int(shifted[2]))
    if value.startswith("LogLevel::"):
        return value.removeprefix("LogLevel::").lower()
    if value.startswith('"'):
        return str(ast.literal_eval(value))
    return value.replace("'", "") or "unset"


def test_every_variable_is_on_the_page() -> None:
    assert set(variables_of_the_page()) == variables_of_the_code()


def test_no_variable_of_the_page_is_warned_of() -> None:
    table = (ROOT / "csrc/engine/known_settings.cc").read_text().partition("kKnown = ")[2]
    known = re.findall(r'"(\w+)"', table.partition("});")[0])
    assert known == sorted(variables_of_the_page())


@pytest.mark.parametrize("name", declared_settings())
def test_default_and_name_elsewhere(name: str) -> None:
    default, nccl = declared_settings()[name]
    shown, rest = variables_of_the_page()[name]
    assert shown == default
    assert nccl in rest


def test_the_settings_are_found() -> None:
    read = {
        name
        for path in DECLARERS
        for name in re.findall(r'"(RDMACOLL_\w+)"', path.with_suffix(".cc").read_text())
    }
    assert set(declared_settings()) == read
