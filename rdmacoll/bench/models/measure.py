"""Rounds, times and CPU seconds of steps, and that all ways have trained the same."""

import statistics
import time
from dataclasses import dataclass, field

import torch
import torch.distributed as dist

from ..frame.job import WrongResult
from ..frame.rounds import Rounds
from .member import Member, Steps
from .team import Way
from .training import trained_alone

TURN_S = 0.2  # of the quickest way; the others make as many steps, for what they train is compared
MOST_STEPS = 50
STEPS_TO_CHECK = 3


@dataclass
class Turns:
    """What a process has measured of its way on one model: of each turn the mean of a step."""

    form: str = ""
    steps: int = 1  # of a turn
    step_ms: list[float] = field(default_factory=list)  # at a worker
    part_ms: list[float] = field(default_factory=list)  # what it computed; the holder's update
    cpu_ms: list[float] = field(default_factory=list)  # of this process

    def add(self, steps: Steps, cpu_ms: float) -> None:
        """Of the first step the caches are another's: its times are left out."""
        self.cpu_ms.append(cpu_ms / len(steps.part))
        self.part_ms.append(statistics.mean(steps.part[1:]) * 1e3)
        if steps.whole:
            self.step_ms.append(statistics.mean(steps.whole[1:]) * 1e3)


class Meter:
    """`control` is a group of all processes, `holders` one of theirs alone."""

    def __init__(
        self,
        way: Way,
        name: str,
        rounds: Rounds,
        control: dist.ProcessGroup,
        holders: dist.ProcessGroup,
    ) -> None:
        self._way, self._name = way, name
        self._rounds, self._control, self._holders = rounds, control, holders

    def measure(self, model: str, rounds: int) -> Turns:
        member = Member(self._way, model)
        turns = Turns()
        self._rounds.in_turns(0, self._way.choose_form)
        quickest_s: list[float] = []
        self._rounds.in_turns(0, lambda: quickest_s.append(self._check_a_few(member)))
        turns.form, turns.steps = self._way.form, self._steps_of_a_turn(quickest_s[0])
        for number in range(rounds):
            self._rounds.in_turns(number, lambda: self._turn(member, turns))
        self._check_all(member)
        return turns

    def _check_a_few(self, member: Member) -> float:
        """Against as many steps in the holder's process alone; the seconds of the quickest."""
        member.reset()
        steps = member.run(STEPS_TO_CHECK)
        if member.holder:
            alone = trained_alone(member.model, self._way.team.workers, STEPS_TO_CHECK)
            self._compare(member, alone, "without transfers")
        return steps.quickest

    def _steps_of_a_turn(self, quickest_s: float) -> int:
        """The same for all; of slow ones one has to do."""
        quickest = torch.tensor(quickest_s, dtype=torch.float64)
        dist.all_reduce(quickest, dist.ReduceOp.MIN, group=self._control)
        return max(1, min(MOST_STEPS, int(TURN_S / quickest.item())))

    def _turn(self, member: Member, turns: Turns) -> None:
        """No process is bound to a core: while a step computes the system can move it from one that
        others load, and the holder sleeps."""
        self._way.team.meet()  # or one would count what it waits for another
        cpu_ns = time.process_time_ns()
        steps = member.run(1 + turns.steps)
        turns.add(steps, (time.process_time_ns() - cpu_ns) / 1e6)

    def _check_all(self, member: Member) -> None:
        """Against the first way, which has made as many steps."""
        if member.holder:
            first = member.holder.parameters.clone()
            dist.broadcast(first, group_src=0, group=self._holders)
            self._compare(member, first, "in the first way")

    def _compare(self, member: Member, wanted: torch.Tensor, where: str) -> None:
        """Raises WrongResult unless the parameters are that to the last bit."""
        assert member.holder
        got = member.holder.parameters
        if torch.equal(got, wanted):
            return
        at = int((got != wanted).nonzero()[0])
        raise WrongResult(
            f"{self._name} trains something else: parameter {at} of {member.model} is "
            f"{got[at].item()}, and {wanted[at].item()} {where}"
        )
