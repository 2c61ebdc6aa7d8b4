"""What there is to show about a collective on hosts: asked of the compiled module, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from . import steps
from .flows import Flows, between_hosts, flows_of
from .least import least_out_bytes
from .roles import Role, roles_of
from .steps import RankPlan

if TYPE_CHECKING:
    from rdmacoll._C import PlannedGroup

WHOLE_RANKS = 64  # of a larger world some ranks are looked at, not all
BY_DEFAULTS = "predicted from default link costs; `rdmacoll tune` measures yours"
BY_TABLE = "predicted from the link costs of the tuned table"


@dataclass(frozen=True)
class Forecast:
    """What an algorithm moves and how long it may take, as csrc/plan/cost/forecast.h says."""

    name: str
    time_ns: int
    out_bytes: int  # out of the host that sends most
    in_bytes: int  # into the one that takes most
    network_latencies: int
    memory_latencies: int
    tiles: int


@dataclass(frozen=True)
class Facts:
    shape: str
    hosts: list[int]  # how many ranks each has
    collective: str
    bytes: int
    least_out_bytes: int
    algorithms: list[Forecast]  # the quickest first
    times: str  # where they are from
    taken: str
    shown: str  # whose plan the rest is
    blocks: int
    roles: list[Role]
    flows: Flows = field(default_factory=dict)  # between ranks, where all were looked at
    plans: list[RankPlan] = field(default_factory=list)  # where their steps were asked for

    @property
    def ranks(self) -> int:
        return sum(self.hosts)

    @property
    def is_whole(self) -> bool:
        return self.ranks <= WHOLE_RANKS

    @property
    def host_of(self) -> list[int]:
        return host_of(self.hosts)

    @property
    def links(self) -> Flows:
        return between_hosts(self.flows, self.host_of)


def host_of(hosts: Sequence[int]) -> list[int]:
    """By rank; those of a host are in a row."""
    return [host for host, ranks in enumerate(hosts) for _ in range(ranks)]


def facts_of(
    group: PlannedGroup,
    collective: str,
    size: int,
    root: int,
    algorithm: str | None,
    shown: Sequence[int],
) -> Facts:
    """root: the group's. shown: the ranks whose steps are asked for. ValueError: what is wrong."""
    taken = group.chosen(collective, size)
    chosen = algorithm or taken

    def plan(rank: int) -> RankPlan:
        return steps.rank_plan(rank, *group.plan(collective, chosen, rank, size))

    hosts = group.hosts
    whole = sum(hosts) <= WHOLE_RANKS
    looked_at = range(sum(hosts)) if whole else _some_ranks(hosts)
    plans = {rank: plan(rank) for rank in sorted({*looked_at, *shown})}
    seen = [plans[rank] for rank in looked_at]
    forecasts = [
        Forecast(name, **group.forecast(collective, name, size))
        for name in group.algorithms(collective)
    ]
    return Facts(
        shape=group.shape,
        hosts=hosts,
        collective=collective,
        bytes=size,
        least_out_bytes=least_out_bytes(collective, hosts, size, host_of(hosts)[root]),
        algorithms=sorted(forecasts, key=lambda forecast: forecast.time_ns),
        times=BY_TABLE if group.measured_links else BY_DEFAULTS,
        taken=taken,
        shown=chosen,
        blocks=seen[0].blocks,
        roles=roles_of(seen, host_of(hosts)),
        flows=flows_of(seen) if whole else {},
        plans=[plans[rank] for rank in shown],
    )


def _some_ranks(hosts: Sequence[int]) -> list[int]:
    """The first, second and last of the first, second, middle and last host."""
    starts = [sum(hosts[:host]) for host in range(len(hosts))]
    looked_at = {min(1, len(hosts) - 1), 0, len(hosts) // 2, len(hosts) - 1}
    ranks = set()
    for host in looked_at:
        last = hosts[host] - 1
        ranks |= {starts[host] + place for place in (0, min(1, last), last)}
    return sorted(ranks)


def as_data(facts: Facts) -> dict[str, Any]:
    """For programs."""
    from .words import sentence

    return {
        "hosts": facts.hosts,
        "shape": facts.shape,
        "ranks": facts.ranks,
        "collective": facts.collective,
        "bytes": facts.bytes,
        "times": facts.times,
        "least_out_bytes": facts.least_out_bytes,
        "algorithms": [asdict(forecast) for forecast in facts.algorithms],
        "taken": facts.taken,
        "shown": facts.shown,
        "blocks": facts.blocks,
        "roles": [
            {"ranks": role.ranks, "does": [sentence(each) for each in role.statements]}
            for role in facts.roles
        ],
        "host_links": [
            {"from": sender, "to": receiver, **asdict(flow)}
            for (sender, receiver), flow in sorted(facts.links.items())
        ],
        "steps": [steps.as_data(plan) for plan in facts.plans],
    }
