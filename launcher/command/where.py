"""Where the ranks go: the hosts of -H, of --hostfile, of the allocation, or this host alone.

Floor: launcher/command. Thread: any.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rdmacoll.launcher.base.hosts import Host, HostError, parse_hostfile, parse_hosts, place

from .allocation.find import find_allocation
from .allocation.host_list_file import Read, read_host_list

NAMED_HOSTS = 16  # in the line about them


@dataclass(frozen=True)
class Where:
    hosts: list[Host]  # with the ranks placed on them
    said: str  # to tell the user; empty where nobody could expect other hosts


def choose_hosts(
    hosts: str | None,
    hostfile: str | None,
    ranks: int | None,
    environ: Mapping[str, str],
    per_host: int | None = None,
    standalone: bool = False,
    read: Read = read_host_list,
) -> Where:
    """HostError if they cannot be read, or have too few slots. ranks None: as many as slots.

    per_host: the slots of each, in the place of its own. standalone: this host, whatever job of a
    batch system there is.
    """
    allocation = find_allocation(environ, read)
    # A rank that starts a job of its own has no allocation: its hosts are in use by the ranks.
    is_rank = "RDMACOLL_AGENT" in environ
    if hosts is not None:
        listed, source = parse_hosts(hosts), "-H"
    elif hostfile is not None:
        listed, source = parse_hostfile(read(hostfile, "--hostfile"), hostfile), "--hostfile"
    elif allocation is not None and not is_rank and not standalone:
        listed, source = allocation.hosts(), ""
    elif (slots := per_host or ranks) is None:
        raise HostError("how many ranks? give -np N")
    else:
        listed = [Host("localhost", slots)]
        source = "--standalone" if standalone else "this host (a rank starts this job)"
    if per_host is not None:
        listed = [Host(host.name, per_host) for host in listed]
    placed = place(listed, _slots(listed) if ranks is None else ranks)
    if allocation is None:
        return Where(placed, "")
    if not source:
        return Where(placed, f"hosts from {allocation.job}: {_named(listed, placed)}")
    return Where(placed, f"hosts from {source}, not from {allocation.job}")


def _slots(hosts: Sequence[Host]) -> int:
    return sum(host.slots for host in hosts)


def _named(listed: Sequence[Host], placed: Sequence[Host]) -> str:
    """`n1:4, n2:4 (no rank on n2)`"""
    said = ", ".join(f"{host.name}:{host.slots}" for host in listed[:NAMED_HOSTS])
    if len(listed) > NAMED_HOSTS:
        said += f", ... ({len(listed)} hosts, {_slots(listed)} slots)"
    idle = [host.name for host in listed[len(placed) :]]
    if not idle:
        return said
    more = f" and {len(idle) - NAMED_HOSTS} more" if len(idle) > NAMED_HOSTS else ""
    return f"{said} (no rank on {', '.join(idle[:NAMED_HOSTS])}{more})"
