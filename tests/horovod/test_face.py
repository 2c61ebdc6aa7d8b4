"""Every name of Horovod's interface, on 1, 2, 3 and 4 ranks. The cases are in the modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import adasum_cases
import elastic_state_cases
import first_step_cases
import horovod_timeline_cases
import named_operation_cases
import optimizer_face_cases
import pytest
from case_job import Outcomes, cases_of
from job_runner import Jobs

WORLDS = (1, 2, 3, 4)
WORKER = Path(__file__).with_name("worker.py")
CASES = [
    (module, name)
    for module in (
        named_operation_cases,
        adasum_cases,
        optimizer_face_cases,
        first_step_cases,
        elastic_state_cases,
        horovod_timeline_cases,
    )
    for name in cases_of(module)
]


class MadeOnce:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[str, int], Outcomes] = {}
        self._failed: dict[tuple[str, int], str] = {}

    def job(self, module: ModuleType, world: int) -> Outcomes:
        key = (module.__name__, world)
        if key not in self._made:
            folder = self._folder / f"{module.__name__}-{world}"
            if key in self._failed:
                pytest.fail(f"the job of all these cases has failed: {self._failed[key]}")
            folder.mkdir()
            try:
                self._made[key] = Outcomes(Jobs(folder), module, world, servers=0, worker=WORKER)
            except pytest.fail.Exception as error:
                self._failed[key] = str(error)
                raise
        return self._made[key]


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeOnce]:
    yield MadeOnce(tmp_path_factory.mktemp("horovod"))


@pytest.mark.parametrize("world", WORLDS, ids="world{}".format)
@pytest.mark.parametrize(("module", "case"), CASES, ids=[name for _, name in CASES])
def test_case(made_once: MadeOnce, module: ModuleType, case: str, world: int) -> None:
    made_once.job(module, world).check(case)
