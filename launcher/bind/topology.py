"""The cores of this host by NUMA node, as far as a process may use them. Reads sysfs.

Floor: launcher/bind. Thread: any.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

SYSFS = Path("/sys")


@dataclass(frozen=True)
class Node:
    """A NUMA node, with the CPUs that may be used."""

    id: int | None  # None: of CPUs that the kernel puts on no node
    cores: tuple[frozenset[int], ...]  # the CPUs of each; several with SMT
    has_adapter: bool  # whether an RDMA device is attached to it


def read_nodes(allowed: AbstractSet[int], sysfs: Path = SYSFS) -> list[Node]:
    """Those that have allowed CPUs, by id. Where a container hides sysfs, each CPU is a core, and
    there is one node."""
    folders = (sysfs / "devices/system/node").glob("node[0-9]*")
    numbers = sorted(int(folder.name.removeprefix("node")) for folder in folders)
    adapters = {_read(path) for path in (sysfs / "class/infiniband").glob("*/device/numa_node")}
    left, nodes = set(allowed), []
    for number in numbers:
        cpus = left & parse_cpus(_read(sysfs / f"devices/system/node/node{number}/cpulist"))
        left -= cpus
        if cpus:
            nodes.append(Node(number, _cores(cpus, sysfs), str(number) in adapters))
    return nodes + ([Node(None, _cores(left, sysfs), False)] if left else [])


def parse_cpus(text: str) -> set[int]:
    """`0-3,8`"""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


def list_cpus(cpus: AbstractSet[int]) -> str:
    """The same backwards."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][1] + 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in parts)


def _cores(cpus: AbstractSet[int], sysfs: Path) -> tuple[frozenset[int], ...]:
    """In the order of their first CPU."""
    left, cores = set(cpus), []
    while left:
        cpu = min(left)
        folder = sysfs / f"devices/system/cpu/cpu{cpu}/topology"
        core = left & (parse_cpus(_read(folder / "thread_siblings_list")) | {cpu})
        left -= core
        cores.append(frozenset(core))
    return tuple(cores)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
