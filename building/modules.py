"""The command that makes the compiled modules: it finds torch, compiles and links. It does
nothing before a module is really built, so that metadata needs neither torch nor a compiler.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from setuptools import Extension
from setuptools.command.build_ext import build_ext

from building.torch_place import NoTorch, Torch, find_torch
from building.units import CompileError, compile_all, compiler, has_header, link, unit

FUSE = "-DFUSE_USE_VERSION=35"


class Module(Extension):
    """`units`: of each file that is compiled, its name and the sources that it includes. They are
    fine where one source will be changed, and its unit compiled again."""

    def __init__(
        self, name: str, units: Callable[[bool], dict[str, list[str]]], *, links_torch: bool
    ) -> None:
        super().__init__(name, list(chain.from_iterable(units(False).values())))
        self.units = units
        self.links_torch = links_torch


class Build(build_ext):
    """Keeps the objects in build/ext, so that editable and plain installs rebuild only changes."""

    extensions: list[Module]

    def run(self) -> None:
        _require_tools()
        if not has_header("fuse3/fuse_lowlevel.h", FUSE):
            print(
                "rdmacoll: built without `rdmacoll mount`: fuse3/fuse_lowlevel.h is missing; "
                "install libfuse3-dev (Debian, Ubuntu) or fuse3-devel (Red Hat, SUSE) to have it",
                flush=True,
            )
            self.extensions = [one for one in self.extensions if one.name != "rdmacoll._fuse"]
        super().run()

    def build_extensions(self) -> None:
        try:
            torch = find_torch()
            print(f"rdmacoll: building for torch {torch.version} in {torch.folder}", flush=True)
            for module in self.extensions:
                self._build(module, torch)
        except (NoTorch, CompileError) as error:
            sys.exit(f"rdmacoll: {error}")

    def _build(self, module: Module, torch: Torch) -> None:
        is_ours = bool(self.editable_mode or self.inplace)
        units = module.units(is_ours and "CI" not in os.environ)
        objects = compile_all(
            [unit(Path("build/units") / f"{name}.cc", of) for name, of in units.items()],
            Path("build/ext") / module.name,
            _flags(torch),
            ["-Werror"] if is_ours else [],
        )
        link(objects, Path(self.get_ext_fullpath(module.name)), _link_flags(module, torch))


def _require_tools() -> None:
    if shutil.which(compiler()[0]) is None:
        sys.exit(
            f"rdmacoll: there is no C++ compiler {compiler()[0]!r}: install g++, or name another "
            "one in CXX"
        )
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        sys.exit(
            f"rdmacoll: {sysconfig.get_path('include')}/Python.h is missing: install python3-dev "
            "(Debian, Ubuntu) or python3-devel (Red Hat, SUSE)"
        )


def _flags(torch: Torch) -> list[str]:
    # As system folders the headers of others give no warnings.
    others = [*torch.includes, sysconfig.get_path("include")]
    return [
        *("-std=c++20", "-O2", "-g1", "-DNDEBUG", "-fPIC", "-pthread", "-fvisibility=hidden"),
        # A unit is one file that includes others: what is of one of them seems to be of several.
        *("-Wall", "-Wextra", "-Wno-psabi", "-Wno-subobject-linkage"),
        *("-DTORCH_API_INCLUDE_EXTENSION_H", "-DTORCH_EXTENSION_NAME=_C"),
        f"-I{os.getcwd()}",
        *(f"-isystem{path}" for path in others),
    ]


def _link_flags(module: Module, torch: Torch) -> list[str]:
    # A compiler that links libstdc++ statically finds all of it in the shared one then. With two in
    # the process, torch's and ours, reading a number from a file has crashed.
    flags = ["-pthread", "-ldl", "-lstdc++"]
    if module.links_torch:
        libraries = ("c10", "torch", "torch_cpu", "torch_python")
        flags = [f"-L{torch.libraries}", *(f"-l{name}" for name in libraries), *flags]
    return flags
