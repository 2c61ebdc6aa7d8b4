"""The ranks of one host under benchmarks/network.py: `network_rank.py ORDER`, as JSON.

torch is imported once and the ranks are forked. All measure, or the first and the last alone, and
the others wait for the end: in a round each system gets a turn, and who begins changes from round
to round. Rank 0 prints a line of JSON for each case: its number, and the rounds' times of each
system, medians within a turn and those of the slowest rank, in microseconds.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from network_cases import GLOO, OURS, RAW, Case, Order

from rdmacoll.bench.frame.rounds import settle
from rdmacoll.bench.measure import times_us

Turn = Callable[[int], float]  # so many operations; microseconds of one

TIMEOUT = timedelta(seconds=120)
LIMIT_S = 900  # for all that a rank does
TURN_US = 30_000
MOST_CALLS = 400
HOST_0, PORT, RAW_PORT = "10.77.0.1", 29_500, 29_501


class RawTcp:
    """A process of raw_tcp at each end; it does nothing between its turns."""

    def __init__(self, program: str, dials: bool) -> None:
        role = ["dial", HOST_0] if dials else ["listen"]
        self._process = subprocess.Popen(
            [program, *role, str(RAW_PORT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def turn(self, case: Case) -> Turn:
        def run(count: int) -> float:
            assert self._process.stdin and self._process.stdout
            order = f"{case.operation} {case.bytes} {case.messages} {count}\n"
            self._process.stdin.write(order)
            self._process.stdin.flush()
            return float(self._process.stdout.readline())

        return run

    def close(self) -> None:
        self._process.communicate(timeout=TIMEOUT.total_seconds())


def torch_turn(case: Case, group: dist.ProcessGroup, active: list[int]) -> Turn:
    """The last rank sends first, as the one that dials does in raw TCP."""
    tensor = torch.zeros(max(1, case.bytes // 4))
    first, last = active[0], active[-1]
    sends = dist.get_rank() == last
    peer = first if sends else last
    answer = tensor if case.operation == "ping_pong" else torch.zeros(1, dtype=torch.uint8)

    def all_reduce() -> None:
        dist.all_reduce(tensor, group=group)

    def messages() -> None:
        for _ in range(case.messages):
            dist.send(tensor, peer, group) if sends else dist.recv(tensor, peer, group)
        dist.recv(answer, peer, group) if sends else dist.send(answer, peer, group)

    call = all_reduce if case.operation == "all_reduce" else messages
    check(group, active)
    return lambda count: statistics.median(times_us(call, count))


def check(group: dist.ProcessGroup, active: list[int]) -> None:
    if dist.get_world_size(group) > len(active):
        return  # the idle ranks take no part
    tensor = torch.full((1000,), float(dist.get_rank() + 1))
    dist.all_reduce(tensor, group=group)
    expected = sum(rank + 1 for rank in active)
    if not bool((tensor == expected).all()):
        sys.exit(f"all_reduce gave {tensor} for {expected}")


class Measurement:
    def __init__(self, order: Order) -> None:
        self._order = order
        world = dist.get_world_size()
        self._active = [0, world - 1] if order.idle else list(range(world))
        self._control = dist.new_group(self._active, backend="gloo", timeout=TIMEOUT)
        gloo = dist.new_group(self._active, backend="gloo", timeout=TIMEOUT)
        assert dist.group.WORLD is not None
        self._groups = {OURS: dist.group.WORLD, GLOO: gloo}

    def run(self) -> None:
        rank = dist.get_rank()
        if rank in self._active:
            raw = self._raw_tcp()
            for number, case in enumerate(self._order.cases):
                turns = {
                    name: raw.turn(case)
                    if raw and name == RAW
                    else torch_turn(case, self._groups[name], self._active)
                    for name in case.systems
                }
                result = {"case": number, "turns_us": self._measure(turns)}
                if rank == 0:
                    print(json.dumps(result), flush=True)
            if raw:
                raw.close()

    def _raw_tcp(self) -> RawTcp | None:
        """Between two ranks, where a case reads beside it."""
        if all(RAW not in case.systems for case in self._order.cases):
            return None
        return RawTcp(self._order.raw_tcp, dials=dist.get_rank() != 0)

    def _measure(self, turns: dict[str, Turn]) -> dict[str, list[float]]:
        counts = {name: self._calls_in_a_turn(turn) for name, turn in turns.items()}
        names = list(turns)
        measured: dict[str, list[float]] = {name: [] for name in names}
        for number in range(self._order.rounds):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                measured[name].append(self._one(turns[name], counts[name]))
        return measured

    def _calls_in_a_turn(self, turn: Turn) -> int:
        few_us = self._one(turn, 1)
        if few_us < TURN_US / 10:
            few_us = self._one(turn, 5)
        return max(1, min(MOST_CALLS, int(TURN_US / few_us)))

    def _one(self, turn: Turn, count: int) -> float:
        """The same on all that measure: the time of the slowest."""
        dist.barrier(group=self._control)
        settle()
        slowest = torch.tensor(turn(count), dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MAX, group=self._control)
        return slowest.item()


def be_rank(rank: int, order: Order) -> None:
    world = order.hosts * order.ranks_per_host
    store = dist.TCPStore(HOST_0, PORT, world, is_master=rank == 0, timeout=TIMEOUT)
    dist.init_process_group(
        order.backend, store=store, rank=rank, world_size=world, timeout=TIMEOUT
    )
    Measurement(order).run()
    store.add("ended", 1)
    if rank in (0, world - 1):
        store.set("measured", "")
    store.wait(["measured"], timedelta(seconds=LIMIT_S))
    dist.barrier()  # rank 0 keeps the store until then
    dist.destroy_process_group()


def main() -> None:
    order = Order.of(json.loads(sys.argv[1]))
    torch.set_num_threads(1)
    first = order.host * order.ranks_per_host
    forked = []
    for rank in range(first + 1, first + order.ranks_per_host):
        if (child := os.fork()) == 0:
            signal.alarm(LIMIT_S)
            be_rank(rank, order)
            sys.exit()
        forked.append(child)
    signal.alarm(LIMIT_S)
    be_rank(first, order)
    for child in forked:
        _, status = os.waitpid(child, 0)
        if status != 0:
            sys.exit(f"a rank of host {order.host} ended with {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
