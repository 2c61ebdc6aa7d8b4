"""Who sends how much to whom, counted in the plans of all ranks. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .steps import RankPlan


@dataclass
class Flow:
    """From one rank to another, or from the ranks of one host to those of another."""

    bytes: int = 0  # of the whole operation
    messages: int = 0  # of one tile
    pairs: int = 0  # of ranks


Flows = dict[tuple[int, int], Flow]  # by sender and receiver


def flows_of(plans: Iterable[RankPlan]) -> Flows:
    """Between ranks. What a rank loads from another's stage that one has sent."""
    flows: Flows = defaultdict(lambda: Flow(pairs=1))
    for plan in plans:
        me = plan.rank
        for step in plan.steps():
            for to in step.destinations:
                if to.buffer == "peer_slot" and to.rank != me:
                    flows[me, to.rank].bytes += to.bytes
            for source in step.sources:
                if source.buffer == "peer_stage":
                    flows[source.rank, me].bytes += source.bytes
            if step.is_message and step.peer != me:
                flows[me, step.peer].messages += 1
    return dict(flows)


def between_hosts(flows: Flows, host_of: Sequence[int]) -> Flows:
    """By host; without what stays inside."""
    sums: Flows = defaultdict(Flow)
    for (sender, receiver), flow in flows.items():
        link = host_of[sender], host_of[receiver]
        if link[0] != link[1]:
            sums[link].bytes += flow.bytes
            sums[link].messages += flow.messages
            sums[link].pairs += 1
    return dict(sums)
