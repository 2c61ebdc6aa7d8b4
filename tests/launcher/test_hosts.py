"""Parsing of -H and --hostfile, and placing ranks.

Floor: tests.
"""

import socket

import pytest
from rdmacoll.launcher.base.hosts import Host, HostError, parse_hostfile, parse_hosts, place


def test_hosts_option() -> None:
    assert parse_hosts("a:2,b:3") == [Host("a", 2), Host("b", 3)]
    assert parse_hosts("a, b:3") == [Host("a", 1), Host("b", 3)]


@pytest.mark.parametrize(
    ("text", "slots"), [("::1", 1), ("[::1]", 1), ("[::1]:3", 3), ("[0:0::1]:2", 2)]
)
def test_the_ipv6_address_of_this_host(text: str, slots: int) -> None:
    assert parse_hosts(text) == [Host("localhost", slots)]


def test_hostfile_takes_both_forms() -> None:
    text = "# ours\na slots=4\n\nb:2   # borrowed\nc\n"
    assert parse_hostfile(text, "f") == [Host("a", 4), Host("b", 2), Host("c", 1)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names no host"),
        ("a:2,", "names no host"),
        (":2", "names no host"),
        ("a:0", "`0` is no number of slots for a"),
        ("a:x", "`x` is no number of slots for a"),
        ("a:-1", "`-1` is no number of slots for a"),
        ("a:" + "9" * 5000, "is no number of slots for a"),
        ("-oProxyCommand=x", "does not begin with `.` or `-`"),
        ("-a:2", "does not begin with"),
        ("a;x", "'a;x' is no name of a host"),
        ("$(x):2", "is no name of a host"),
        ("a b", "is no name of a host"),
        ("user@a", "is no name of a host"),
        ("x" * 300, "is no name of a host"),
        ("fe80::1:2", "has several colons; write host:slots or"),
        ("[fe80::1]:2", "give the host's name, from DNS"),
        ("[::1]:0", "`0` is no number of slots"),
        ("[::1]:", "`` is no number of slots"),
        ("[::1]2", "is no IPv6 address"),
        ("[a]:2", "is no IPv6 address"),
    ],
)
def test_bad_hosts_option(text: str, says: str) -> None:
    with pytest.raises(HostError, match=says):
        parse_hosts(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# nothing\n", "f: names no host"),
        ("a\nb slots=x\n", "f, line 2: `x` is no number"),
        ("a slots=2 more\n", "f, line 1: cannot read"),
        ("a cores=2\n", "f, line 1: cannot read"),
        ("a:2 slots=2\n", "f, line 1: cannot read"),
    ],
)
def test_bad_hostfile(text: str, says: str) -> None:
    with pytest.raises(HostError, match=says):
        parse_hostfile(text, "f")


def test_ranks_fill_hosts_in_order() -> None:
    hosts = [Host("a", 2), Host("b", 2), Host("c", 2)]
    assert place(hosts, 3) == [Host("a", 2), Host("b", 1)]
    assert place(hosts, 6) == hosts


def test_too_many_ranks() -> None:
    with pytest.raises(HostError, match=r"-np 3: there are only 2 slots on a:1,b:1"):
        place([Host("a", 1), Host("b", 1)], 3)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "127.1.2.3", socket.gethostname()])
def test_names_of_this_host(name: str) -> None:
    assert Host(name, 1).is_local


def test_other_hosts_are_not_local() -> None:
    assert not Host("node17.example.org", 1).is_local
    assert not Host("127.example.org", 1).is_local
