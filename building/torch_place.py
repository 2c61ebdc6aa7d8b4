"""Finds the torch to compile against by its files; nothing here imports it. An isolated build of
pip hides the environment's packages from imports, but runs under that environment's Python.
"""

import importlib.util
import re
import site
import sys
from dataclasses import dataclass
from pathlib import Path

OLDEST = (2, 11)


class NoTorch(Exception):
    """Says what to do."""


@dataclass(frozen=True)
class Torch:
    folder: Path
    version: str  # without what comes behind a "+"

    @property
    def includes(self) -> list[Path]:
        include = self.folder / "include"
        return [include, include / "torch/csrc/api/include"]

    @property
    def libraries(self) -> Path:
        return self.folder / "lib"


def find_torch() -> Torch:
    for folder in _folders():
        header = folder / "include/torch/headeronly/version.h"
        if header.is_file():
            return _checked(folder, header.read_text())
    raise NoTorch(_remedy())


def requirement() -> str:
    """What the metadata asks for: the torch that is compiled against, as no other can load it.

    A source distribution asks for any that it can be compiled against.
    """
    try:
        return f"torch=={find_torch().version}"
    except NoTorch:
        return f"torch>={'.'.join(map(str, OLDEST))}"


def _folders() -> list[Path]:
    spec = importlib.util.find_spec("torch")
    seen = list(spec.submodule_search_locations or []) if spec else []
    environment = [f"{place}/torch" for place in (*site.getsitepackages(), *_of_user())]
    return [Path(folder) for folder in (*seen, *environment)]


def _of_user() -> list[str]:
    return [site.getusersitepackages()] if site.ENABLE_USER_SITE else []


def _checked(folder: Path, header: str) -> Torch:
    version = re.search(r'define TORCH_VERSION[\s\\]+"([\d.]+)', header)
    if version is None:
        raise NoTorch(f"{folder} is no torch that rdmacoll knows: its version.h names no version")
    if tuple(map(int, version[1].split(".")[:2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise NoTorch(f"{folder} is torch {version[1]}, and rdmacoll needs torch {oldest} or newer")
    return Torch(folder, version[1])


def _remedy() -> str:
    return (
        "it compiles against the torch that it will run with, and this build, which runs under "
        f"{sys.executable}, sees none. Where torch is in your environment, run:\n"
        "    uv pip install setuptools wheel && uv pip install --no-build-isolation .\n"
        "or, with pip:\n"
        "    pip install setuptools wheel && pip install --no-build-isolation .\n"
        "Where it is not, install torch first."
    )
