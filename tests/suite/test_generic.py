"""PyTorch's own generic distributed tests, in worlds of 2, 3 and 4 ranks, on our backend.

    python -m pytest tests/suite                           all that gloo passes, all three worlds
    python -m pytest tests/suite -k "World3 and all_reduce"
    python -m pytest tests/suite --lift-gates              without torch's gates by the name gloo
    python -m pytest tests/suite --hosts 2x2               the world of 4 over two hosts; 2x1, 3+1

The yardstick and the known gates are described in conftest.py.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

from adapt import adapt, chosen
from hosts.enter import enter
from rewrite import environment, load_generic

WORLDS = (2, 3, 4)
FOLDERS: list[tempfile.TemporaryDirectory[str]] = []  # removed with the interpreter


def generic_tests(backend: str, world: int, folder: str) -> type:
    module: Any = load_generic(backend, world, folder)
    here = environment(backend, world, folder)

    class Generic(module.TestDistBackend, module.DistributedTest._DistTestBase):
        @classmethod
        def setUpClass(cls) -> None:
            os.environ.update(here)
            super().setUpClass()

        @classmethod
        def _run(cls, rank: int, *arguments: Any, **options: Any) -> None:
            if chosen.holders:
                enter(chosen.holders[rank])
            super()._run(rank, *arguments, **options)

        def setUp(self) -> None:
            super().setUp()
            module.INIT_METHOD = here["INIT_METHOD"]
            self._spawn_processes()

    Generic.__module__ = __name__
    Generic.__name__ = Generic.__qualname__ = f"TestWorld{world}"
    return Generic


def define(world: int) -> None:
    temporary = tempfile.TemporaryDirectory(prefix=f"suite{world}")
    FOLDERS.append(temporary)
    tests = generic_tests(chosen.backend, world, temporary.name)
    setattr(sys.modules[__name__], tests.__name__, tests)


adapt(chosen)
for size in WORLDS:
    define(size)
