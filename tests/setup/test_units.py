"""What is compiled again, what is said of it, and what a compiler's error becomes."""

import os
from pathlib import Path

import pytest

from building.units import CompileError, compile_all, unit


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CXX", "g++")
    for name in ("CPPFLAGS", "CXXFLAGS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "number.h").write_text("#pragma once\ninline int number() { return 1; }\n")
    (tmp_path / "a.cc").write_text('#include "number.h"\nint a() { int spare; return number(); }\n')
    return tmp_path / "a.cc"


def compile_one(source: Path, *strict: str, flags: tuple[str, ...] = ("-Wall",)) -> list[str]:
    return compile_all([source], source.parent / "objects", list(flags), list(strict))


def test_each_unit_is_told(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (made,) = compile_one(source)
    assert Path(made).is_file()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("rdmacoll: compiling 1 of 1 units, ")
    assert second.startswith("rdmacoll: compiled 1 of 1: a, ")


def test_only_what_changed_is_compiled_again(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def compiled(*flags: str) -> bool:
        compile_one(source, flags=("-Wall", *flags))
        return "compiled" in capsys.readouterr().out

    assert compiled()
    assert not compiled()
    assert compiled("-O1")
    (made,) = compile_one(source, flags=("-Wall", "-O1"))
    later = os.stat(made).st_mtime + 1
    os.utime(source.parent / "number.h", (later, later))
    assert compiled("-O1")


def test_a_warning_is_an_error_in_our_own_builds_only(source: Path) -> None:
    with pytest.raises(CompileError, match="this failed: g\\+\\+ .*-Werror"):
        compile_one(source, "-Werror")
    compile_one(source)


def test_a_unit_that_says_the_same_is_left_alone(tmp_path: Path) -> None:
    path = unit(tmp_path / "units/u.cc", ["a.cc", "b.cc"])
    assert path.read_text() == '#include "a.cc"\n#include "b.cc"\n'
    os.utime(path, (1, 1))
    assert unit(path, ["a.cc", "b.cc"]).stat().st_mtime == 1
    assert unit(path, ["a.cc"]).stat().st_mtime > 1
