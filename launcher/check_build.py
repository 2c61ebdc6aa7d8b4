"""rdmarun --check-build: what this installation has, and what it lacks and why.

Floor: launcher. Thread: any.
"""

import importlib
from collections.abc import Mapping

from .mpi_find import MpiError, find_mpi


def check_build() -> int:
    """Prints a line per item; the status is 1 if something a job needs is missing."""
    rows, missing = [], 0
    for name, probe in (("torch", _torch), ("MPI", _mpi), ("mpi4py", _mpi4py)):
        try:
            rows.append((name, probe()))
        except (ImportError, MpiError, RuntimeError) as error:
            rows.append((name, f"missing: {error}"))
            missing = 1
    try:
        rows += _engine().items()
    except (ImportError, AttributeError) as error:
        rows.append(("rdmacoll", f"the extension does not load: {error}"))
        missing = 1
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
    return missing


def _torch() -> str:
    return str(importlib.import_module("torch").__version__)


def _mpi() -> str:
    mpi = find_mpi()
    return f"{mpi.version} ({mpi.mpiexec})"


def _mpi4py() -> str:
    """Its version and the library it loads; the library is not initialised."""
    mpi4py = importlib.import_module("mpi4py")
    mpi4py.rc.initialize = False
    library = importlib.import_module("mpi4py.MPI").Get_library_version()
    return f"{mpi4py.__version__} with {' '.join(library.split()[:3])}"


def _engine() -> Mapping[str, str]:
    info: Mapping[str, str] = importlib.import_module("rdmacoll").build_info()
    return info
