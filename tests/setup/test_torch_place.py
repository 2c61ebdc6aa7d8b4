"""How a build finds the torch to compile against, and what it says where it finds none."""

import importlib.util
import site
import subprocess
import sys
from pathlib import Path

import pytest

from building.torch_place import NoTorch, find_torch, requirement

ROOT = Path(__file__).parents[2]
HEADER = '#define TORCH_VERSION_MAJOR {}\n#define TORCH_VERSION \\\n  "{}"\n'


@pytest.fixture
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As in an isolated build: torch cannot be imported, and the environment's folder is this."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(tmp_path)])
    monkeypatch.setattr(site, "ENABLE_USER_SITE", False)
    return tmp_path


def put_torch(folder: Path, version: str) -> None:
    header = folder / "torch/include/torch/headeronly/version.h"
    header.parent.mkdir(parents=True)
    header.write_text(HEADER.format(version.split(".")[0], version))


def test_the_torch_of_this_environment() -> None:
    import torch

    found = find_torch()
    assert found.folder == Path(torch.__file__).parent
    assert found.version == torch.__version__.partition("+")[0]
    assert all(folder.is_dir() for folder in (*found.includes, found.libraries))


def test_a_torch_that_cannot_be_imported(isolated: Path) -> None:
    put_torch(isolated, "2.13.1")
    found = find_torch()
    assert (found.folder, found.version) == (isolated / "torch", "2.13.1")


def test_none_names_the_line_for_each_installer(isolated: Path) -> None:
    with pytest.raises(NoTorch) as said:
        find_torch()
    lines = [line.strip() for line in str(said.value).splitlines()]
    assert "uv pip install setuptools wheel && uv pip install --no-build-isolation ." in lines
    assert "pip install setuptools wheel && pip install --no-build-isolation ." in lines


def test_one_that_is_too_old(isolated: Path) -> None:
    put_torch(isolated, "2.9.1")
    with pytest.raises(NoTorch, match=r"torch is torch 2\.9\.1, and rdmacoll needs torch 2\.11"):
        find_torch()


def test_metadata_needs_neither_torch_nor_a_compiler(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['torch'] = None; sys.argv = ['setup.py', '--quiet', 'dist_info', "
        f"'--output-dir', {str(tmp_path)!r}]; exec(compile(open('setup.py').read(), 'setup.py', "
        "'exec'), {'__file__': 'setup.py', '__name__': '__main__'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={"PATH": "/nowhere", "CXX": "no-such-compiler"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (metadata,) = tmp_path.glob("rdmacoll-*.dist-info/METADATA")
    assert "Requires-Dist: torch" in metadata.read_text()


def test_metadata_asks_for_the_torch_that_is_compiled_against(isolated: Path) -> None:
    assert requirement() == "torch>=2.11"
    put_torch(isolated, "2.13.1")
    assert requirement() == "torch==2.13.1"
