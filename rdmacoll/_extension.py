"""Loads the compiled module on first use, and sees to it that it lets Python go in peace."""

import atexit
import functools
import importlib
import os
from types import ModuleType

REBUILD = "pip install --no-build-isolation --force-reinstall --no-deps rdmacoll"


@functools.cache
def extension() -> ModuleType:
    """rdmacoll._C; ImportError says what to do if it does not fit."""
    import torch

    try:
        module = importlib.import_module("rdmacoll._C")
    except ImportError as error:
        raise ImportError(
            f"rdmacoll's compiled module does not load into torch {torch.__version__}: {error}. "
            f"If torch has changed since it was built, build it again: {REBUILD}"
        ) from error
    atexit.register(_leave, module)
    return module


def _leave(module: ModuleType) -> None:
    # Operations in flight end while Python can still run their callbacks.
    module.quiesce()
    if name := os.environ.get("RDMACOLL_TIMELINE"):
        from .debug.timeline import write_own_timeline

        write_own_timeline(module.flight_dump(), name)
