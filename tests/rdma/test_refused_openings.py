"""Devices, ports, addresses and limits that do not serve: opening or meeting ends in bounded time
with what is wrong, and what to do about it.

Floor: tests.
"""

from collections.abc import Callable

import pytest
from links import link_down
from transport_shell import Refused, TransportShell, connect

CONNECT_MS = 1_000
LIMIT_MS = 20_000
MIB = 1 << 20

Start = Callable[..., TransportShell]


def locked_memory(limit: int) -> tuple[str, ...]:
    """A command before another's; for root the limit holds only without CAP_IPC_LOCK."""
    return "prlimit", f"--memlock={limit}:{limit}", "setpriv", "--bounding-set=-ipc_lock"


LIMITS_CONF = '"* soft memlock unlimited" and "* hard memlock unlimited"'


def test_a_device_that_is_not_there(start: Start, devices: list[str]) -> None:
    with pytest.raises(Refused) as refused:
        start("nothing")
    assert refused.value.code == "Unsupported"
    for device in devices:
        assert f"{device} is excluded by RDMACOLL_HCA='=nothing'" in refused.value.message


def test_devices_that_a_container_was_not_given(start: Start, devices: list[str]) -> None:
    hide = 'mount -t tmpfs none /dev/infiniband && exec "$0"'
    with pytest.raises(Refused) as refused:
        start(devices[0], prefix=("unshare", "--mount", "sh", "-c", hide))
    assert refused.value.code == "Unsupported"
    assert "this host has no RDMA device" in refused.value.message
    assert "in a container pass --device=/dev/infiniband" in refused.value.message


def test_a_port_that_is_down(start: Start, wired: list[str]) -> None:
    with link_down(wired[0]), pytest.raises(Refused) as refused:
        start(wired[0])
    assert refused.value.code == "Unsupported"
    assert f"{wired[0]} port 1 is DOWN" in refused.value.message
    assert "ip link set <interface> up" in refused.value.message


def test_a_limit_on_locked_memory_when_opening(start: Start, devices: list[str]) -> None:
    with pytest.raises(Refused) as refused:
        start(devices[0], prefix=locked_memory(65536))
    assert refused.value.code == "System"
    assert f"on {devices[0]} port 1" in refused.value.message
    assert "This process may lock 65536 bytes of memory (ulimit -l)" in refused.value.message
    assert LIMITS_CONF in refused.value.message


def test_a_limit_on_locked_memory_when_registering(start: Start, devices: list[str]) -> None:
    shell = start(devices[0], prefix=locked_memory(8 * MIB))
    with pytest.raises(Refused) as refused:
        shell.make(1, 16 * MIB)
    assert refused.value.code == "System"
    assert "registering 16777216 bytes of memory on" in refused.value.message
    assert LIMITS_CONF in refused.value.message
    shell.make(2, 1 * MIB)  # what fits, goes


def failures_to_connect(
    one: TransportShell, other: TransportShell, limit_ms: int = LIMIT_MS
) -> list[Refused]:
    failures = []
    one.ask("connect", other.address.hex(), limit_ms)
    other.ask("connect", one.address.hex(), limit_ms)
    for shell in (one, other):
        with pytest.raises(Refused) as refused:
            shell.answer()
        failures.append(refused.value)
    return failures


@pytest.mark.parametrize("others_index", ["0", "1"])
def test_an_address_that_is_not_routed(start: Start, wired: list[str], others_index: str) -> None:
    """GID 0 is link-local: nobody gets there or away from there, and learns it at once."""
    one = start(wired[0], RDMACOLL_GID_INDEX="0")
    other = start(wired[1], RDMACOLL_GID_INDEX=others_index)
    failures = failures_to_connect(one, other)
    for failure, shell, peer in zip(failures, (one, other), (other, one), strict=True):
        assert failure.code == "System"
        assert f"addressing pid {peer.pid} on host" in failure.message
        assert f"on {shell.device} port 1" in failure.message
        assert "see RDMACOLL_GID_INDEX" in failure.message
    assert "GID 0 = fe80::" in failures[0].message
    assert "at fe80::" in failures[1].message


def test_an_index_without_an_address(start: Start, devices: list[str]) -> None:
    with pytest.raises(Refused) as refused:
        start(devices[0], RDMACOLL_GID_INDEX="200")
    assert refused.value.code == "InvalidArgument"
    assert "RDMACOLL_GID_INDEX=200 does not exist" in refused.value.message
    assert "its GIDs are: 0 = " in refused.value.message


def test_a_process_that_has_ended(start: Start, devices: list[str]) -> None:
    one, other = start(devices[0]), start(devices[-1])
    other.kill()
    with pytest.raises(Refused) as refused:
        one.do("connect", other.address.hex(), CONNECT_MS)
    assert refused.value.code == "Timeout"
    assert f"pid {other.pid} on host" in refused.value.message
    assert f"from {devices[0]} port 1" in refused.value.message
    assert "its process may have ended" in refused.value.message


def test_different_numbers_of_queue_pairs(start: Start, devices: list[str]) -> None:
    one, other = start(devices[0], RDMACOLL_IB_QPS="2"), start(devices[-1])
    for failure in failures_to_connect(one, other):
        assert failure.code == "Mismatch"
        assert "set RDMACOLL_IB_QPS alike" in failure.message


def test_a_link_that_returns_while_we_connect(start: Start, wired: list[str]) -> None:
    """What could not be sent is sent again."""
    one, other = start(wired[0]), start(wired[1])
    one.ask("connect", other.address.hex(), LIMIT_MS)
    with link_down(wired[0]):
        assert not one.answered(within_s=1)
    other.do("connect", one.address.hex(), LIMIT_MS)
    one.answer()
    third = start(wired[1])
    connect(one, third)  # nor does it stay deaf
