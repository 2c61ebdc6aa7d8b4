"""Jobs whose workers run all the functions `case_...` of a module, as a job takes seconds to start.

Floor: tests.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from job_runner import Jobs

WORKER = Path(__file__).with_name("case_worker.py")


def cases_of(module: ModuleType) -> list[str]:
    return [name for name in vars(module) if name.startswith("case_")]


class Outcomes:
    """How each of the cases has ended."""

    def __init__(
        self,
        jobs: Jobs,
        module: ModuleType,
        workers: int,
        servers: int,
        more: Sequence[str] = (),
        worker: Path = WORKER,
        **env: str,
    ) -> None:
        """more: options of rdmarun. worker: what calls the cases."""
        assert module.__file__ is not None
        served = ["--servers", str(servers)] if servers else []
        options = ["-np", str(workers), *served, *more]
        self._done = jobs.run(*options, jobs.python, str(worker), module.__file__, **env)
        files = [jobs.folder / f"ends.{rank}" for rank in range(workers)]
        self._ends = [json.loads(file.read_text()) if file.exists() else {} for file in files]

    def check(self, case: str) -> None:
        said = [ends.get(case, "it did not come to that") for ends in self._ends]
        bad = "\n".join(f"worker {rank}: {text}" for rank, text in enumerate(said) if text)
        assert not bad, f"{bad}\n{self._done.stdout}\n{self._done.stderr}"
        assert self._done.returncode == 0, self._done.stderr
