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
    if name := os.environ.get("RDMACOLL_TIMELINE"):
        from .debug.timeline_writer import TimelineWriter

        atexit.register(TimelineWriter(module.flight_dump, name).close)
    # Before that: operations in flight end while Python can still run their callbacks.
    atexit.register(module.quiesce)
    return module
