"""Which cores each rank of a host gets, and with them how many threads. Pure.

Floor: launcher/bind. Thread: any.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from rdmacoll.launcher.base.job import Job

from .topology import Node, list_cpus

SPIN_US = "5"  # the engine's own, where cores suffice


class Bind(str, Enum):
    """What --bind takes."""

    CORES = "cores"  # no two ranks share one
    NUMA = "numa"  # all of one NUMA node, which ranks may share
    NONE = "none"


@dataclass(frozen=True)
class Binding:
    cpus: list[frozenset[int]]  # of each rank, by local rank; empty where they are not bound
    env: dict[str, str]  # that ranks get where the user sets them to nothing else
    said: str  # about it, for people
    is_short: bool = False  # there are fewer cores than ranks

    def of(self, local_rank: int) -> frozenset[int]:
        """Empty: it is not bound."""
        return self.cpus[local_rank] if self.cpus else frozenset()


def bind_ranks(job: Job, agent: int, nodes: Sequence[Node]) -> Binding:
    """nodes: of this agent's host. Agents that share a machine share its cores."""
    mode, slots = Bind(job.bind), job.hosts[agent].slots
    if mode is Bind.NONE:
        return Binding([], {}, "")
    name = job.hosts[agent].name
    mates = [mate for mate, host in enumerate(job.hosts) if job.one_machine or host.name == name]
    before = sum(job.hosts[mate].slots for mate in mates if mate < agent)
    ranks = sum(job.hosts[mate].slots for mate in mates)
    cores = sum(len(node.cores) for node in nodes)
    if mode is Bind.CORES and ranks > cores:
        said = (
            f"{ranks} ranks and {cores} cores: no rank is bound (--bind cores), and each gets "
            "1 thread where OMP_NUM_THREADS is not set"
        )
        return Binding([], {}, f"host {name}: {said}", is_short=True)
    counts = _count(nodes, ranks)
    if mode is Bind.CORES:
        parts = _split(nodes, counts)
        threads = min(len(part) for part in parts)
    else:
        held = [(node, count) for node, count in zip(nodes, counts, strict=True) if count]
        parts = [node.cores for node, count in held for _ in range(count)]
        threads = max(1, min(len(node.cores) // count for node, count in held))
    cpus = [frozenset().union(*part) for part in parts][before : before + slots]
    env = {"OMP_NUM_THREADS": str(threads)}
    if ranks <= cores:  # the engine compares the ranks of the host with a rank's own CPUs
        env["RDMACOLL_SPIN_US"] = SPIN_US
    return Binding(cpus, env, f"host {name}: {_describe(job.first_rank(agent), cpus, nodes)}")


def _count(nodes: Sequence[Node], ranks: int) -> list[int]:
    """Ranks of each node: one after the other goes where it gets the largest share of the cores,
    and of equal ones to a node that has an adapter. The engine takes the adapter that is nearest to
    a rank's cores."""
    counts = [0] * len(nodes)
    for _ in range(ranks):
        shares = [len(n.cores) / (count + 1) for n, count in zip(nodes, counts, strict=True)]
        best = max(range(len(nodes)), key=lambda k: (shares[k], nodes[k].has_adapter, -k))
        counts[best] += 1
    return counts


def _split(nodes: Sequence[Node], counts: Sequence[int]) -> list[tuple[frozenset[int], ...]]:
    """The cores of each rank, those of a node in its ranks' order. With fewer ranks than nodes,
    those without a rank are dealt out, so that no core is idle."""
    parts, idle = [], []
    for node, count in zip(nodes, counts, strict=True):
        has = len(node.cores)
        cuts = [has * part // count for part in range(count + 1)] if count else []
        parts += [node.cores[a:b] for a, b in zip(cuts, cuts[1:], strict=False)]
        idle += [] if count else [node]
    if len(parts) < len(nodes):
        for turn, node in enumerate(idle):
            parts[turn % len(parts)] += node.cores
    return parts


def _describe(first_rank: int, cpus: Sequence[frozenset[int]], nodes: Sequence[Node]) -> str:
    """`rank 0 on CPUs 0-3 (NUMA node 0), rank 1 on CPUs 4-7 (NUMA node 1)`"""
    said = []
    for rank, own in enumerate(cpus, start=first_rank):
        on = [
            str(node.id)
            for node in nodes
            if node.id is not None and own & frozenset().union(*node.cores)
        ]
        where = f" (NUMA node {', '.join(on)})" if on else ""
        said.append(f"rank {rank} on CPUs {list_cpus(own)}{where}")
    return ", ".join(said)
