"""Where agent 0 listens: which interfaces, which port, and that others try all its addresses.

Floor: tests.
"""

import re
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from rdmacoll.launcher.base.hosts import Host
from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.command.agents import Agents
from rdmacoll.launcher.command.mpi_command import Flavour
from rdmacoll.launcher.command.mpi_find import Mpi
from rdmacoll.launcher.keys.key import Key
from rdmacoll.launcher.star import greeting, port
from rdmacoll.launcher.star.greeting import dial
from rdmacoll.launcher.star.interfaces import (
    FOR_THIS_HOST_ONLY,
    Interface,
    InterfaceError,
    choose_interfaces,
    system_interfaces,
)
from rdmacoll.launcher.star.place import Place
from rdmacoll.launcher.star.port import PortError, listen

KEY = Key(b"k" * 32, "run")
ENGINES = Path(__file__).resolve().parents[2] / "csrc/transport/tcp/network/interfaces.cc"
HOST = [
    Interface("lo", "127.0.0.1"),
    Interface("eth0", "10.0.0.1"),
    Interface("eth01", "10.0.1.1"),
    Interface("ib0", "10.0.2.1"),
    Interface("docker0", "172.17.0.1"),
]


def chosen(found: list[Interface], names: str = "") -> str:
    return " ".join(one.name for one in choose_interfaces(found, names))


# --- the interfaces ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("", "eth0 eth01 ib0"),
        ("eth", "eth0 eth01"),
        ("eth0", "eth0 eth01"),
        ("=eth0", "eth0"),
        ("ib,eth01", "eth01 ib0"),
        ("=ib0,lo", "lo ib0"),
        ("^eth", "lo ib0 docker0"),
        ("^=eth0", "lo eth01 ib0 docker0"),
        ("^docker,lo", "eth0 eth01 ib0"),
        ("docker", "docker0"),
        (",,ib,,", "ib0"),
        ("^", "lo eth0 eth01 ib0 docker0"),
    ],
)
def test_names_are_in_nccls_syntax(names: str, expected: str) -> None:
    """As tests/unit/tcp/interfaces_test.cc has it for the ranks."""
    assert chosen(HOST, names) == expected


@pytest.mark.parametrize("names", ["wlan", "=", ",", "=eth", "ETH", "^eth,ib,lo,docker", "a\nb"])
def test_names_of_no_interface_are_an_error_that_lists_those_there_are(names: str) -> None:
    there = "lo (127.0.0.1), eth0 (10.0.0.1), eth01 (10.0.1.1), ib0 (10.0.2.1)"
    said = f"RDMACOLL_SOCKET_IFNAME={names!r} takes none of the interfaces of this host: {there}"
    with pytest.raises(InterfaceError, match=re.escape(said)):
        choose_interfaces(HOST, names)


def test_those_for_this_host_alone_are_the_last_resort() -> None:
    for name in ("docker0", "br-12ab", "virbr0", "veth9f", "cni0", "podman1"):
        inner, lo = Interface(name, "172.17.0.1"), Interface("lo", "127.0.0.1")
        assert chosen([inner, Interface("wlan0", "fd00::1")]) == "wlan0"
        assert chosen([inner, lo]) == f"{name} lo"
    assert chosen([Interface("dummy0", "127.0.0.2"), Interface("br0", "10.0.0.1")]) == "br0"
    assert chosen([Interface("lo", "::1")]) == "lo"


def test_the_ranks_leave_the_same_out() -> None:
    (listed,) = re.findall(r"kForThisHostOnly\{([^}]*)\}", ENGINES.read_text())
    assert tuple(re.findall(r'"([^"]*)"', listed)) == FOR_THIS_HOST_ONLY


@pytest.mark.parametrize("address", ["fe80::1", "febf::1", "169.254.9.9"])
def test_link_local_addresses_are_never_taken(address: str) -> None:
    both = [Interface("eth0", address), Interface("eth0", "10.0.0.1")]
    assert choose_interfaces(both, "eth0") == both[1:]
    with pytest.raises(InterfaceError, match="this host has no network interface that is up"):
        choose_interfaces(both[:1], "")


def test_the_fastest_come_first_and_sixteen_at_most() -> None:
    speeds = {"a": 1_000, "b": 0, "c": 100_000, "d": 1_000}
    found = [Interface(name, "10.0.0.1", speed) for name, speed in speeds.items()]
    assert chosen(found) == "c a d b"
    assert len(choose_interfaces(found * 10, "")) == 16


def test_the_systems_are_those_that_are_up() -> None:
    up = {name for name, stats in psutil.net_if_stats().items() if "up" in stats.flags.split(",")}
    expected = {
        (name, one.address.partition("%")[0])
        for name, addresses in psutil.net_if_addrs().items()
        for one in addresses
        if name in up and one.family in (socket.AF_INET, socket.AF_INET6)
    }
    assert {(one.name, one.address) for one in system_interfaces()} == expected
    assert ("lo", "127.0.0.1") in expected


# --- the port ------------------------------------------------------------------------------------


@contextmanager
def listening(environ: Mapping[str, str], only_local: bool = False) -> Iterator[list[str]]:
    with ExitStack() as opened:
        socks = [opened.enter_context(sock) for sock in listen(environ, only_local)]
        yield [f"{address}:{number}" for address, number, *_ in (s.getsockname() for s in socks)]


@pytest.fixture
def three_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Interface(f"eth{n}", f"127.0.0.{n + 2}", 10 - n) for n in range(3)]
    monkeypatch.setattr(port, "system_interfaces", lambda: found)
    monkeypatch.setattr(Interface, "is_for_this_host_only", False)


@pytest.mark.usefixtures("three_cards")
def test_all_addresses_have_one_port() -> None:
    with listening({"RDMACOLL_SOCKET_IFNAME": "^eth1"}) as at:
        number = at[0].rpartition(":")[2]
        assert at == [f"127.0.0.2:{number}", f"127.0.0.4:{number}"]
    with listening({"RDMACOLL_SOCKET_IFNAME": ""}) as at:
        assert len(at) == 3


@pytest.mark.usefixtures("three_cards")
def test_a_port_that_is_taken_at_one_address_is_passed_over() -> None:
    with socket.create_server(("127.0.0.3", 0)) as taken:
        first = taken.getsockname()[1]
        with listening({"RDMACOLL_TCP_PORTS": f"{first}-{first + 100}"}) as at:
            (number,) = {int(one.rpartition(":")[2]) for one in at}
            assert len(at) == 3 and first < number <= first + 100
        with pytest.raises(
            PortError,
            match=f"RDMACOLL_TCP_PORTS={first}: none of these ports is free at 127.0.0.2, "
            "127.0.0.3, 127.0.0.4; .*: name a larger range",
        ):
            listen({"RDMACOLL_TCP_PORTS": str(first)}, only_local=False)
        with socket.create_server(("127.0.0.2", first)):
            pass  # what was opened there meanwhile is closed again


def test_without_a_range_the_system_chooses_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its choice for the first address is taken at the second."""
    monkeypatch.setattr(port, "CHOICES", 3)
    with ExitStack() as opened:
        free = [opened.enter_context(socket.socket()) for _ in range(3)]
        tried: list[int] = []

        def answer(_: object, number: int) -> list[socket.socket]:
            tried.append(number)
            return free if len(tried) == 3 else []

        monkeypatch.setattr(port, "_listen_at_all", answer)
        assert listen({}, only_local=True) == free
        assert tried == [0, 0, 0]
        with pytest.raises(PortError, match="no TCP port is free at 127.0.0.1"):
            monkeypatch.setattr(port, "_listen_at_all", lambda *_: [])
            listen({}, only_local=True)


def test_an_address_that_cannot_be_had_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Interface("eth0", "192.0.2.77")]
    monkeypatch.setattr(port, "system_interfaces", lambda: found)
    said = "cannot listen at 192.0.2.77: .*; choose other interfaces with RDMACOLL_SOCKET_IFNAME"
    with pytest.raises(PortError, match=said):
        listen({}, only_local=False)


def test_ports_are_one_or_a_range() -> None:
    with listening({"RDMACOLL_TCP_PORTS": ""}, only_local=True) as at:
        number = int(at[0].rpartition(":")[2])
    for said in (f"{number}-{number}", str(number)):
        with listening({"RDMACOLL_TCP_PORTS": said}, only_local=True) as at:
            assert at == [f"127.0.0.1:{number}"]
    for wrong in ("2-1", "-80", "0-9", "1-65536", "a-b", "1-2-3", " 1"):
        with pytest.raises(PortError, match="is no port and no range; write it as 20000-20100"):
            listen({"RDMACOLL_TCP_PORTS": wrong}, only_local=True)


def test_ipv6_alone() -> None:
    if not any(one.address == "::1" for one in system_interfaces()):
        pytest.skip("this host has no ::1")
    found = [one for one in system_interfaces() if one.address == "::1"]
    with ExitStack() as opened:
        patch = opened.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(port, "system_interfaces", lambda: found)
        (at,) = opened.enter_context(listening({}))
        number = int(at.rpartition(":")[2])
        assert at == f"::1:{number}"
        socket.create_connection(("::1", number)).close()
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", number))


# --- who comes there -----------------------------------------------------------------------------


def test_each_address_has_its_turn_however_many_swallow_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now, tried = [0.0], []

    def swallow(address: tuple[str, int], timeout: float) -> socket.socket:
        tried.append((address[0], timeout))
        now[0] += timeout
        raise TimeoutError("timed out")

    sleep, clock = (lambda _: None), (lambda: now[0])
    monkeypatch.setattr(greeting, "time", SimpleNamespace(monotonic=clock, sleep=sleep))
    monkeypatch.setattr(greeting.socket, "create_connection", swallow)
    place = Place(["127.0.0.1", "10.0.0.1", "10.0.0.1", "fd00::1", "10.0.0.3"], 20000)
    with pytest.raises(OSError, match=r"on port 20000 \(127.0.0.1: timed out; 10.0.0.1: .*fd00::1"):
        dial(KEY, 1, place, 10.0)
    assert tried == [(one, 2.5) for one in ("127.0.0.1", "10.0.0.1", "fd00::1", "10.0.0.3")]


def test_a_name_that_is_not_known_is_said() -> None:
    name = f"{secrets.token_hex(8)}.invalid"
    with pytest.raises(OSError, match=rf"cannot be reached on port 20000 \({name}: "):
        dial(KEY, 1, Place([name], 20000), 0.0)


def agents_of(flavour: Flavour, env: dict[str, str]) -> Agents:
    job = Job([Host("a", 1), Host("b", 1)], ["train.py"], "/", env, "run", 1.0)
    return Agents(job, KEY, Mpi("mpiexec", flavour, ""), ["agent"], [], {"PATH": "/bin"}, None)


@pytest.mark.parametrize("flavour", Flavour)
def test_agent_0_is_told_as_the_ranks_are(flavour: Flavour) -> None:
    """By its command: Open MPI hands on no variables."""
    env = {"RDMACOLL_TCP_PORTS": "20000", "RDMACOLL_SOCKET_IFNAME": "^lo", "TOKEN": "t"}
    first, second = (command.argv for command in agents_of(flavour, env).first())
    told = ["env", "RDMACOLL_SOCKET_IFNAME=^lo", "RDMACOLL_TCP_PORTS=20000", "agent", "run", "0"]
    assert list(first[-7:-1]) == told
    assert "env" not in second
    assert "env" not in agents_of(flavour, {}).first()[0].argv


@pytest.mark.parametrize("flavour", Flavour)
@pytest.mark.parametrize("families", [{socket.AF_INET6}, {socket.AF_INET, socket.AF_INET6}])
def test_where_mpiexec_cannot_go_is_said(
    flavour: Flavour, families: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [(family, 0, 0, "", ()) for family in families]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    (_, command) = agents_of(flavour, {}).first()
    is_lost = flavour is Flavour.MPICH and socket.AF_INET not in families
    assert ("goes over IPv4 alone" in command.hint()) == is_lost
