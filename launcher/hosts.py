"""Hosts and their slots: what -H and --hostfile say, and how ranks are placed on them. Pure.

Floor: launcher. Thread: any.
"""

import socket
from collections.abc import Iterable
from dataclasses import dataclass

LOCAL_NAMES = {"localhost", "localhost.localdomain", "::1"}


class HostError(ValueError):
    """The host list is wrong; the message says where and what would be right."""


@dataclass(frozen=True)
class Host:
    """A host and how many ranks it may take (in a list of hosts) or takes (once placed)."""

    name: str
    slots: int

    @property
    def is_local(self) -> bool:
        name = self.name.lower()
        own = socket.gethostname().lower()
        return name in LOCAL_NAMES or name.startswith("127.") or name in (own, own.split(".")[0])


def parse_hosts(text: str) -> list[Host]:
    """Reads the value of -H: host:slots,host:slots. A host without slots has one."""
    return [_parse_host(entry.strip(), f"-H {text}") for entry in text.split(",")]


def parse_hostfile(text: str, path: str) -> list[Host]:
    """Reads a hostfile: one `host slots=N` or `host:N` per line; # begins a comment."""
    hosts = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if words:
            where = f"{path}, line {number}"
            hosts.append(_parse_host(_join_slots(words, where), where))
    if not hosts:
        raise HostError(f"{path}: names no host; a line is `host slots=N`")
    return hosts


def place(hosts: Iterable[Host], world: int) -> list[Host]:
    """Fills the hosts in their order with `world` ranks; hosts that get none are left out."""
    hosts = list(hosts)
    slots = sum(host.slots for host in hosts)
    if world > slots:
        names = ",".join(f"{host.name}:{host.slots}" for host in hosts)
        raise HostError(
            f"-np {world}: there are only {slots} slots on {names}; "
            "give the hosts more slots (-H host:slots) or start fewer ranks"
        )
    placed, left = [], world
    for host in hosts:
        ranks = min(host.slots, left)
        left -= ranks
        if ranks:
            placed.append(Host(host.name, ranks))
    return placed


def _join_slots(words: list[str], where: str) -> str:
    """`host slots=N` as `host:N`."""
    name, *settings = words
    if not settings:
        return name
    key, _, value = settings[0].partition("=")
    if len(settings) > 1 or key != "slots" or ":" in name:
        raise HostError(f"{where}: cannot read `{' '.join(words)}`; a line is `host slots=N`")
    return f"{name}:{value}"


def _parse_host(entry: str, where: str) -> Host:
    name, colon, slots = entry.rpartition(":")
    if not colon:
        name, slots = entry, "1"
    if not name or any(c.isspace() for c in name):
        raise HostError(f"{where}: `{entry}` names no host; write host:slots")
    if not slots.isdecimal() or int(slots) == 0:
        raise HostError(f"{where}: `{slots}` is no number of slots for {name}; write host:slots")
    return Host(name, int(slots))
