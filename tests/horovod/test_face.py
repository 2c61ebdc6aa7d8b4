"""Every name of Horovod's interface, on 1, 2, 3 and 4 ranks. The cases are in the modules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import named_operation_cases
import optimizer_face_cases
import pytest
from job_runner import Jobs

WORLDS = (1, 2, 3, 4)
WORKER = str(Path(__file__).with_name("worker.py"))
CASES = [
    (module, name)
    for module in (named_operation_cases, optimizer_face_cases)
    for name in vars(module)
    if name.startswith("case_")
]


class Job:
    """One for all cases of a module, as it takes seconds to start."""

    def __init__(self, jobs: Jobs, module: ModuleType, world: int) -> None:
        assert module.__file__ is not None
        self._done = jobs.run("-np", str(world), jobs.python, WORKER, module.__file__)
        files = [jobs.folder / f"ends.{rank}" for rank in range(world)]
        self._ends = [json.loads(file.read_text()) if file.exists() else {} for file in files]

    def check(self, case: str) -> None:
        said = [ends.get(case, "it did not come to that") for ends in self._ends]
        bad = "\n".join(f"rank {rank}: {text}" for rank, text in enumerate(said) if text)
        assert not bad, f"{bad}\n{self._done.stdout}\n{self._done.stderr}"
        assert self._done.returncode == 0, self._done.stderr


class MadeOnce:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[str, int], Job] = {}

    def job(self, module: ModuleType, world: int) -> Job:
        key = (module.__name__, world)
        if key not in self._made:
            folder = self._folder / f"{module.__name__}-{world}"
            folder.mkdir()
            self._made[key] = Job(Jobs(folder), module, world)
        return self._made[key]


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeOnce]:
    yield MadeOnce(tmp_path_factory.mktemp("horovod"))


@pytest.mark.parametrize("world", WORLDS, ids="world{}".format)
@pytest.mark.parametrize(("module", "case"), CASES, ids=[name for _, name in CASES])
def test_case(made_once: MadeOnce, module: ModuleType, case: str, world: int) -> None:
    made_once.job(module, world).check(case)
