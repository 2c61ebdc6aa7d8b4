"""The compiled modules: rdmacoll._C, the engine (csrc/) and its torch face (torch_ext/) in one; and
rdmacoll._fuse (fuse_ext/), the mount, where the headers of libfuse3 are.

Everything else about the package is in pyproject.toml.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from glob import glob
from itertools import groupby
from pathlib import Path

from setuptools import Extension, setup

try:
    from torch.utils.cpp_extension import BuildExtension, CppExtension, include_paths
except ImportError:
    sys.exit(
        "rdmacoll compiles against the torch you already have, and found none: install torch "
        "first, then run pip install --no-build-isolation"
    )

GIB_PER_COMPILER = 2  # a unit that includes torch's headers takes 1.6 GiB
SOURCES = [
    *glob("csrc/[!t]*/**/*.cc", recursive=True),  # every floor but the transports
    *glob("csrc/transport/shm/*.cc"),
    *glob("csrc/transport/tcp/**/*.cc", recursive=True),
    *glob("csrc/transport/verbs/**/*.cc", recursive=True),
]
TORCH_UNITS = 2
UNIT_FILES = 8  # of a folder, included by one unit: most of the time goes into headers
ALONE = "csrc/reduce"  # a file for each set of instructions


class Build(BuildExtension):
    """Keeps the objects in build/ext, so that editable and plain installs rebuild only changes."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.build_temp = os.path.abspath("build/ext")
        self.force = True  # to link: what is linked depends on a variable, too


def unit(name: str, sources: Iterable[str]) -> str:
    """A file that includes all of these."""
    path = Path("build/units") / f"{name}.cc"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f'#include "{source}"\n' for source in sources)
    if not path.exists() or path.read_text() != text:  # else it would be compiled again
        path.write_text(text)
    return str(path)


def torch_units() -> list[str]:
    """To parse torch's headers takes ten times as long as what one file adds to them."""
    sources = sorted(glob("torch_ext/**/*.cc", recursive=True))
    return [unit(f"torch_ext_{i}", sources[i::TORCH_UNITS]) for i in range(TORCH_UNITS)]


def engine_units() -> list[str]:
    units = []
    for folder, of_folder in groupby(sorted(SOURCES, key=os.path.split), key=os.path.dirname):
        sources = list(of_folder)
        if folder == ALONE:
            units += sources
            continue
        for first in range(0, len(sources), UNIT_FILES):
            name = f"{folder.replace('/', '_')}_{first // UNIT_FILES}"
            units.append(unit(name, sources[first : first + UNIT_FILES]))
    return units


def compilers_at_once() -> int:
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return max(1, min(len(os.sched_getaffinity(0)), memory_gib // GIB_PER_COMPILER))


def has_header(name: str) -> bool:
    """The library itself is opened at run time, where there is one."""
    options = ["-DFUSE_USE_VERSION=35", "-fsyntax-only", "-x", "c++", "-"]
    compiler = [os.environ.get("CXX", "c++"), *options]
    source = f"#include <{name}>".encode()
    return subprocess.run(compiler, input=source, stderr=subprocess.DEVNULL).returncode == 0


def flags() -> list[str]:
    # Named again as system folders, the headers of others lose their -I and so their warnings.
    others = [*include_paths(), sysconfig.get_path("include")]
    return [
        *("-std=c++20", "-O2", "-g1", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"),
        # A unit is one file that includes others: what is of one of them seems to be of several.
        *("-Wno-psabi", "-Wno-subobject-linkage"),
        *(f"-isystem{path}" for path in others),
    ]


def headers(*folders: str) -> list[str]:
    return sorted(path for one in folders for path in glob(f"{one}/**/*.h", recursive=True))


def engine_module() -> Extension:
    return CppExtension(
        "rdmacoll._C",
        [*torch_units(), *engine_units()],  # the longest first
        include_dirs=[os.getcwd()],  # an absolute path: ninja runs elsewhere
        depends=headers("csrc", "torch_ext"),
        # A compiler that links libstdc++ statically finds all of it in the shared one then. With
        # two in the process, torch's and ours, reading a number from a file has crashed.
        libraries=["dl", "stdc++"],
        extra_compile_args=flags(),
    )


def mount_module() -> Extension:
    """Without torch's libraries: it has pybind11 of torch's headers alone."""
    base = ["csrc/base/printable.cc", "csrc/base/status.cc"]
    sources = [*base, *glob("csrc/files/*.cc"), *glob("fuse_ext/*.cc")]
    return Extension(
        "rdmacoll._fuse",
        [unit("fuse_ext", sorted(sources))],
        include_dirs=[os.getcwd(), *include_paths()],
        depends=headers("csrc/base", "csrc/files", "fuse_ext"),
        libraries=["dl", "stdc++"],
        extra_compile_args=flags(),
        language="c++",
    )


def modules() -> list[Extension]:
    if has_header("fuse3/fuse_lowlevel.h"):
        return [engine_module(), mount_module()]
    print(
        "rdmacoll is built without `rdmacoll mount`: fuse3/fuse_lowlevel.h is missing; install "
        "libfuse3-dev (Debian, Ubuntu) or fuse3-devel (Red Hat, SUSE) to have it",
        file=sys.stderr,
    )
    return [engine_module()]


os.environ.setdefault("MAX_JOBS", str(compilers_at_once()))
setup(ext_modules=modules(), cmdclass={"build_ext": Build})
