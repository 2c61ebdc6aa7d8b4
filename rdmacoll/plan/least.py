"""The bytes that must leave a host, whatever the plan. Pure.

docs/ALGORITHMS.md, "Several hosts", says the same of hosts of one size.
"""

from collections.abc import Sequence


def least_out_bytes(collective: str, hosts: Sequence[int], size: int, root_host: int) -> int:
    """Out of the host that sends most. hosts: how many ranks each has; size: as in --bytes."""
    count, ranks = len(hosts), sum(hosts)
    if count == 1:
        return 0
    average = (count - 1) * size // count  # where each byte goes to, or comes from, all other hosts
    match collective:
        case "all_reduce":
            return 2 * (count - 1) * size // count
        case "broadcast" | "reduce":
            return size
        case "all_gather":  # at least its own blocks once
            return max(average, max(hosts) * size // ranks)
        case "reduce_scatter":  # sums of what is not its own
            return max(average, (ranks - min(hosts)) * size // ranks)
        case "all_to_all":
            return max(each * (ranks - each) for each in hosts) * size // ranks
        case "gather":
            return max(each for host, each in enumerate(hosts) if host != root_host) * size // ranks
        case "scatter":
            return (ranks - hosts[root_host]) * size // ranks
    return 0
