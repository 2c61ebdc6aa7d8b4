"""The compiled module rdmacoll._C: the engine (csrc/) and its torch face (torch_ext/) in one.

Everything else about the package is in pyproject.toml.
"""

import os
import sys
import sysconfig
from glob import glob

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
    *glob("csrc/[!t]*/*.cc"),  # every floor but the transports
    *glob("csrc/transport/*.cc"),
    *glob("csrc/transport/shm/*.cc"),
    *glob("torch_ext/*.cc"),
]


class Build(BuildExtension):
    """Keeps the objects in build/ext, so that editable and plain installs rebuild only changes."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.build_temp = os.path.abspath("build/ext")


def compilers_at_once() -> int:
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return max(1, min(len(os.sched_getaffinity(0)), memory_gib // GIB_PER_COMPILER))


def extension() -> Extension:
    # Named again as system folders, the headers of others lose their -I and so their warnings.
    others = [*include_paths(), sysconfig.get_path("include")]
    flags = ["-std=c++20", "-O2", "-g1", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
    return CppExtension(
        "rdmacoll._C",
        sorted(SOURCES),
        include_dirs=[os.getcwd()],  # an absolute path: ninja runs elsewhere
        depends=sorted(glob("csrc/**/*.h", recursive=True) + glob("torch_ext/*.h")),
        extra_compile_args=[*flags, "-Wno-psabi", *(f"-isystem{path}" for path in others)],
    )


os.environ.setdefault("MAX_JOBS", str(compilers_at_once()))
setup(ext_modules=[extension()], cmdclass={"build_ext": Build})
