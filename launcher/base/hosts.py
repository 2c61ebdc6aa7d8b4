"""Hosts and their slots: what -H and --hostfile say, and how ranks are placed on them. Pure.

Floor: launcher/base. Thread: any.
"""

import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LOCAL_NAMES = {"localhost", "localhost.localdomain"}
MOST_RANKS = 16384  # of one group, kMaxWorld in csrc/base/limits.h
_LOOPBACK = re.compile(r"127(\.[0-9]{1,3}){1,3}")
# Names get onto the command lines of mpiexec and ssh. So none may look like an option, or have
# characters that a shell interprets.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_SLOTS = re.compile(r"0*[1-9][0-9]{0,5}")


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
        if name in LOCAL_NAMES or name in (own, own.split(".")[0]):
            return True
        return _LOOPBACK.fullmatch(name) is not None


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
    if world > MOST_RANKS:
        raise HostError(
            f"-np {world}: a group can have {MOST_RANKS} ranks at most; start several jobs"
        )
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


def master_address(hosts: Sequence[Host], own_name: str) -> str:
    """A name of host 0 that all can reach it by; own_name is what host 0 calls itself."""
    if all(host.is_local for host in hosts):
        return "127.0.0.1"
    return own_name if hosts[0].is_local else hosts[0].name


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
    if entry == "::1" or entry.startswith("["):
        return _parse_ipv6(entry, where)
    name, colon, slots = entry.rpartition(":")
    if not colon:
        name, slots = entry, "1"
    if not name:
        raise HostError(f"{where}: `{entry}` names no host; write host:slots")
    if ":" in name:
        raise HostError(
            f"{where}: `{entry}` has several colons; write host:slots or [address]:slots"
        )
    return checked_host(name, _slots(name, slots, where), where)


def checked_host(name: str, slots: int, where: str) -> Host:
    """A host by a name that others have written; `where`, for messages."""
    if _NAME.fullmatch(name) is None:
        raise HostError(
            f"{where}: {name!r} is no name of a host; one has letters, digits, `.`, `-` and `_`, "
            "and does not begin with `.` or `-`"
        )
    return Host(name, slots)


def _parse_ipv6(entry: str, where: str) -> Host:
    """Takes ::1 alone, as localhost: mpiexec would read the colons of others as host:slots."""
    match = re.fullmatch(r"\[(.*)\](?::(.*))?", f"[{entry}]" if entry == "::1" else entry)
    try:
        address = ipaddress.IPv6Address(match[1] if match else "")
    except ValueError:
        raise HostError(f"{where}: {entry!r} is no IPv6 address; write [address]:slots") from None
    assert match is not None
    if not address.is_loopback:
        raise HostError(
            f"{where}: mpiexec cannot be given the IPv6 address {address}; give the host's name, "
            "from DNS or /etc/hosts"
        )
    slots = "1" if match[2] is None else match[2]
    return Host("localhost", _slots(match[1], slots, where))


def _slots(name: str, slots: str, where: str) -> int:
    if _SLOTS.fullmatch(slots) is None:
        raise HostError(f"{where}: `{slots}` is no number of slots for {name}; write host:slots")
    return int(slots)
