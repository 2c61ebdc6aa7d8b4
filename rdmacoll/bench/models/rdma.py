"""rdmacoll.remote: workers read the parameters where they lie, and write their gradients to where
the holder wants them, with a notification; it notifies them when it has made a step.
"""

from collections.abc import Callable

import torch
import torch.distributed as dist

from rdmacoll import remote

from .team import Team, Way

PARAMETERS = "parameters"


class Remote(Way):
    def __init__(self, team: Team) -> None:
        super().__init__(team)
        self._group = dist.new_group(team.ranks, backend="rdma", use_local_synchronization=True)
        self._exposed: list[remote.Exposure] = []

    def prepare(self, elements: int, update: Callable[[], None]) -> None:
        self.team.meet()  # nobody is at the last model any more
        for exposed in self._exposed:
            exposed.revoke()
        self._number, self._update = 0, update
        self.parameters = self._empty(elements, "r")
        if self.team.holds:
            self._prepare_holder(elements)
        else:
            self._prepare_worker(elements)
        self.team.meet()

    def _prepare_holder(self, elements: int) -> None:
        workers = range(self.team.workers)
        self.gradients = [self._empty(elements, "rw") for _ in workers]
        exposed = [self._expose(self.gradients[n], f"gradients {n}", "rw") for n in workers]
        self._handed_in = exposed
        self._exposed = [self._expose(self.parameters, PARAMETERS, "r"), *exposed]
        self._nothing = self._empty(0, "r")
        self._done = [self._open(f"done {n}", on=1 + n)[:0] for n in workers]

    def _prepare_worker(self, elements: int) -> None:
        worker = self.team.worker
        self.gradients = [self._empty(elements, "r")]
        self._step_made = self._expose(self._empty(1, "rw"), f"done {worker}", "rw")
        self._exposed = [self._step_made]
        self._there = self._open(PARAMETERS, on=0)
        self._mine_there = self._open(f"gradients {worker}", on=0)

    def _empty(self, elements: int, access: str) -> torch.Tensor:
        return remote.empty(elements, dtype=torch.float32, access=access, group=self._group)

    def _expose(self, tensor: torch.Tensor, name: str, access: str) -> remote.Exposure:
        return remote.expose(tensor, name, access, group=self._group)

    def _open(self, name: str, on: int) -> remote.RemoteTensor:
        return remote.open(name, on=on, group=self._group)

    def pull(self) -> None:
        self._there.read(out=self.parameters)

    def push(self) -> None:
        self._number += 1
        self._mine_there.write(self.gradients[0], notify=self._number)
        self._step_made.wait_notify(self._number)

    def serve(self, steps: int) -> None:
        for _ in range(steps):
            self._number += 1
            for exposed in self._handed_in:
                exposed.wait_notify(self._number)
            self._update()
            for done in self._done:
                done.write(self._nothing, notify=self._number)
