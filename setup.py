"""The compiled modules: rdmacoll._C, the engine (csrc/) and its torch face (torch_ext/) in one; and
rdmacoll._fuse (fuse_ext/), the mount, where the headers of libfuse3 are. Here is what they are made
of; building/ makes them. Everything else about the package is in pyproject.toml.
"""

import os
import sys
from glob import glob
from itertools import groupby

from setuptools import setup

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from building.modules import Build, Module  # noqa: E402
from building.torch_place import requirement  # noqa: E402

SOURCES = [
    *glob("csrc/[!t]*/**/*.cc", recursive=True),  # every floor but the transports
    *glob("csrc/transport/shm/*.cc"),
    *glob("csrc/transport/tcp/**/*.cc", recursive=True),
    *glob("csrc/transport/verbs/**/*.cc", recursive=True),
]
ALONE = "csrc/reduce"  # a file for each set of instructions
PROOFS = "csrc/plan/verify"  # of plans: in the tests alone
FINE_UNIT_FILES, FINE_TORCH_UNITS = 8, 2


def torch_units(fine: bool) -> dict[str, list[str]]:
    """To parse torch's headers takes as long as to compile all that includes them."""
    sources = sorted(glob("torch_ext/**/*.cc", recursive=True))
    count = FINE_TORCH_UNITS if fine else 1
    return {f"torch_ext_{i}_of_{count}": sources[i::count] for i in range(count)}


def engine_units(fine: bool) -> dict[str, list[str]]:
    """Fine: some files of a folder. Else: all of a floor, or of a transport."""
    units = {}
    sources = [source for source in SOURCES if not source.startswith(PROOFS)]
    for room, of_room in groupby(sorted(sources, key=os.path.split), _folder if fine else _floor):
        files = list(of_room)
        count = 1 if room == ALONE else FINE_UNIT_FILES if fine else len(files)
        for first in range(0, len(files), count):
            name = f"{room.replace('/', '_')}_{first // count}_by_{count}"
            units[name] = files[first : first + count]
    return units


def mount_units(_fine: bool) -> dict[str, list[str]]:
    base = ["csrc/base/printable.cc", "csrc/base/status.cc"]
    return {"fuse_ext": sorted([*base, *glob("csrc/files/*.cc"), *glob("fuse_ext/*.cc")])}


def _folder(source: str) -> str:
    return os.path.dirname(source)


def _floor(source: str) -> str:
    parts = source.split("/")
    return "/".join(parts[: 3 if parts[1] == "transport" else 2])


modules = [
    # The longest units first.
    Module("rdmacoll._C", lambda fine: torch_units(fine) | engine_units(fine), links_torch=True),
    # It has pybind11 of torch's headers alone.
    Module("rdmacoll._fuse", mount_units, links_torch=False),
]
# Wheels for several torches lie beside each other (building/wheels.py).
local = os.environ.get("RDMACOLL_LOCAL_VERSION", "")
setup(
    ext_modules=modules,
    options={"egg_info": {"tag_build": f"+{local}"}} if local else {},
    cmdclass={"build_ext": Build},
    install_requires=[requirement(), "mpi4py>=4.1", "mpich>=4.3"],
)
