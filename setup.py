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
TORCH_UNITS = 2
UNIT_FILES = 8  # of a folder, included by one unit: most of the time goes into headers
ALONE = "csrc/reduce"  # a file for each set of instructions


def torch_units() -> dict[str, list[str]]:
    """To parse torch's headers takes ten times as long as what one file adds to them."""
    sources = sorted(glob("torch_ext/**/*.cc", recursive=True))
    return {f"torch_ext_{i}": sources[i::TORCH_UNITS] for i in range(TORCH_UNITS)}


def engine_units() -> dict[str, list[str]]:
    units = {}
    for folder, of_folder in groupby(sorted(SOURCES, key=os.path.split), key=os.path.dirname):
        sources = list(of_folder)
        files = 1 if folder == ALONE else UNIT_FILES
        for first in range(0, len(sources), files):
            name = f"{folder.replace('/', '_')}_{first // files}"
            units[name] = sources[first : first + files]
    return units


def mount_unit() -> dict[str, list[str]]:
    base = ["csrc/base/printable.cc", "csrc/base/status.cc"]
    return {"fuse_ext": sorted([*base, *glob("csrc/files/*.cc"), *glob("fuse_ext/*.cc")])}


modules = [
    # The longest units first.
    Module("rdmacoll._C", {**torch_units(), **engine_units()}, links_torch=True),
    # It has pybind11 of torch's headers alone.
    Module("rdmacoll._fuse", mount_unit(), links_torch=False),
]
# Wheels for several torches lie beside each other (building/wheels.py).
local = os.environ.get("RDMACOLL_LOCAL_VERSION", "")
setup(
    ext_modules=modules,
    options={"egg_info": {"tag_build": f"+{local}"}} if local else {},
    cmdclass={"build_ext": Build},
    install_requires=[requirement(), "mpi4py>=4.1", "mpich>=4.3"],
)
