"""The command line as data. What is wrong with one: test_bad_input.py.

Floor: tests.
"""

import pytest
from rdmacoll.launcher.command.options import parse


def env_of(*argv: str, **environ: str) -> dict[str, str]:
    return parse(["-np", "2", *argv, "script.py"], environ, "0").env


@pytest.mark.parametrize(
    ("size", "size_bytes"),
    [("0", 0), ("4096", 4096), ("64k", 65536), ("512M", 512 << 20), ("8G", 8 << 30)],
)
def test_heap_size(size: str, size_bytes: int) -> None:
    assert env_of("--heap-size", size) == {"RDMACOLL_HEAP_BYTES": str(size_bytes)}


def test_without_a_heap_size_the_environment_stands() -> None:
    assert env_of(RDMACOLL_HEAP_BYTES="5") == {"RDMACOLL_HEAP_BYTES": "5"}
    assert env_of("--heap-size", "7", RDMACOLL_HEAP_BYTES="5") == {"RDMACOLL_HEAP_BYTES": "7"}


@pytest.mark.parametrize("size", ["", "G", "-1", "1.5G", "8GB", "8X"])
def test_sizes_that_are_none(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        env_of(f"--heap-size={size}")
    assert f"argument --heap-size: {size!r} is not a size; give bytes, or" in (
        capsys.readouterr().err
    )
