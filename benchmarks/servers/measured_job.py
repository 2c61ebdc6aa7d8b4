"""MeasuredJob: a worker that measures a push and a pull of 16 MB whenever it is told to
(link_worker.py), and its server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

WORKER = str(Path(__file__).with_name("link_worker.py"))
RDMACOLL = str(Path(sys.executable).with_name("rdmacoll"))
END_S = 30.0
# As hosts.stand.Host.start().
Start = Callable[..., subprocess.Popen[str]]


class MeasuredJob:
    def __init__(
        self,
        stack: ExitStack,
        worker: Start,
        server: Start,
        store: tuple[str, int],
        env: Mapping[str, str] | None = None,
        grpc_at: str = "",
    ) -> None:
        """store: where the worker makes it. Returns once both have measured."""
        env = env or {}
        address, port = store
        of_rank = {"MASTER_ADDR": address, "MASTER_PORT": str(port), "RANK": "0", "WORLD_SIZE": "1"}
        self._worker = worker(
            sys.executable, WORKER, "measure", grpc_at, env={**env, **of_rank},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        where = f"{address}:{port}"
        serve = ["ps", "serve", "--number", "0", "--servers", "1", "--store", where]
        self._server = server(RDMACOLL, *serve, env=env, stderr=subprocess.DEVNULL)
        stack.callback(self._end)
        self.measure()

    def measure(self) -> dict[str, float]:
        """The seconds of each. Raises RuntimeError if the worker has ended."""
        assert self._worker.stdin is not None and self._worker.stdout is not None
        self._worker.stdin.write("go\n")
        self._worker.stdin.flush()
        said = self._worker.stdout.readline()
        if not said:
            raise RuntimeError("the worker has ended")
        found: dict[str, float] = json.loads(said)
        return found

    def _end(self) -> None:
        assert self._worker.stdin is not None
        self._worker.stdin.close()
        self._worker.wait(END_S)
        self._server.terminate()
        self._server.wait(END_S)
