"""What a process learns of a peer that dies, of links that go down, and of memory that is gone: in
bounded time, with the peer, the device and a remedy named.

Floor: tests.
"""

import time
from collections.abc import Callable

import pytest
from links import link_down
from transport_shell import LIMIT_S, Pair, Refused, TransportShell, connect

REGION, REGION_BYTES = Pair.REGION, Pair.REGION_BYTES
FOR_EVER = 1 << 40  # puts
LIMIT_MS = 20_000  # against about 1.3 s: a second to the probe, and the retries
WINDOW = 256

Start = Callable[..., TransportShell]


def start_waiting(shell: TransportShell, limit_ms: int = LIMIT_MS) -> None:
    """For a signal that does not come: it sends nothing by itself."""
    shell.ask("await", 0, REGION, 0, 1, limit_ms)


def start_putting(shell: TransportShell) -> None:
    """Until the peer is gone."""
    shell.ask("put", 0, REGION, 0, REGION, 0, REGION_BYTES, FOR_EVER, LIMIT_MS)


def failure_of(shell: TransportShell, peer: TransportShell) -> Refused:
    """What ends the wait; it names the peer and this side's device."""
    with pytest.raises(Refused) as refused:
        shell.answer()
    assert refused.value.code != "Timeout"
    assert f"pid {peer.pid} on host" in refused.value.message
    assert f"over {shell.device} port 1" in refused.value.message
    return refused.value


def test_a_peer_is_killed_while_we_wait(pair: Pair) -> None:
    start_waiting(pair.one)
    pair.other.kill()
    failure = failure_of(pair.one, pair.other)
    assert failure.code == "PeerFailed"
    assert "process has ended" in failure.message or "process or host is gone" in failure.message


def test_a_peer_is_killed_while_we_put(pair: Pair) -> None:
    pair.one.store(REGION, 0, b"\x01")
    start_putting(pair.one)
    end = time.monotonic() + LIMIT_S
    while pair.other.show(REGION, 0, 1) != b"\x01":
        assert time.monotonic() < end
    pair.other.kill()
    assert failure_of(pair.one, pair.other).code == "PeerFailed"


def test_the_death_of_one_peer_is_none_of_the_others(
    pair: Pair, start: Start, devices: list[str]
) -> None:
    third = start(devices[0])
    connect(pair.one, third)
    key = third.make(REGION, REGION_BYTES)
    pair.one.do("open", 1, key.hex())
    start_waiting(pair.one)
    pair.other.kill()
    failure_of(pair.one, pair.other)
    pair.one.store(REGION, 0, b"still here")
    pair.one.do("put", 1, REGION, 0, REGION, 0, 10, 1, LIMIT_MS)
    assert third.show(REGION, 0, 10) == b"still here"


def test_a_peer_that_leaves_says_so(pair: Pair) -> None:
    start_waiting(pair.one)
    pair.other.leave()
    with pytest.raises(Refused, match=f"PeerFailed pid {pair.other.pid} on host .* has left"):
        pair.one.answer()


def test_a_peer_that_is_stopped_is_waited_for(pair: Pair) -> None:
    """Its device answers for it: to the probe, and to puts."""
    pair.other.stop()
    start_waiting(pair.one, limit_ms=3_000)  # probes, retries, and time to spare
    with pytest.raises(Refused, match="Timeout the test's own limit"):
        pair.one.answer()
    pair.one.store(REGION, 4096, b"asleep?")
    pair.one.do("put", 0, REGION, 4096, REGION, 4096, 7, 1, LIMIT_MS)
    assert pair.one.do("signal", 0, REGION, 0, 1, 1) == "1"
    pair.other.resume()
    pair.other.do("await", 0, REGION, 0, 1, LIMIT_MS)
    assert pair.other.show(REGION, 4096, 7) == b"asleep?"


def test_more_signals_than_a_sleeper_takes(pair: Pair) -> None:
    """The sender is told Full, never that the receiver is not ready; then all of them come."""
    count = 4 * WINDOW
    pair.other.stop()
    sent = int(pair.one.do("signal", 0, REGION, 0, 1, count))
    assert sent == WINDOW
    start_waiting(pair.one, limit_ms=2_000)  # would show a broken connection
    with pytest.raises(Refused, match="Timeout"):
        pair.one.answer()
    assert pair.one.do("signal", 0, REGION, 0, sent + 1, count) == "0"
    pair.other.resume()
    for seen in range(WINDOW, count + 1, WINDOW):
        pair.other.do("await", 0, REGION, 0, seen, LIMIT_MS)
        pair.one.do("status", 0)
        sent += int(pair.one.do("signal", 0, REGION, 0, sent + 1, min(WINDOW, count - sent)))
    assert sent == count
    assert pair.other.line(REGION, 0).counter == count


def test_memory_that_the_peer_has_released(pair: Pair, start: Start, devices: list[str]) -> None:
    lender, third = pair.other, start(devices[0])
    connect(lender, third)
    key = lender.make(REGION + 1, 4096)  # lent to nobody, so it goes at once
    pair.one.do("open", 0, key.hex())
    lender.do("release", REGION + 1)
    lender.do("status", 0)  # it has polled since
    pair.one.ask("put", 0, REGION, 0, REGION + 1, 0, 64, 1, LIMIT_MS)
    failure = failure_of(pair.one, lender)
    assert failure.code == "PeerFailed"
    assert "IBV_WC_REM_ACCESS_ERR" in failure.message
    assert "refuses the key of the memory" in failure.message
    start_waiting(lender)
    assert failure_of(lender, pair.one).code == "PeerFailed"
    lender.do("status", 1)  # the third


@pytest.mark.parametrize("begin", [start_waiting, start_putting], ids=["waiting", "putting"])
def test_a_link_goes_down(
    start: Start, wired: list[str], begin: Callable[[TransportShell], None]
) -> None:
    pair = Pair(start(wired[0]), start(wired[1]))
    begin(pair.one)
    begin(pair.other)
    with link_down(wired[0]):
        own = failure_of(pair.one, pair.other)
        others = failure_of(pair.other, pair.one)
    assert own.code == "System"
    assert "its link is down" in own.message and "ip link" in own.message
    if begin is start_waiting:  # a put may fail before the device has reported anything
        assert "before that the device reported" in own.message
        assert f"{wired[0]} port 1 reports IBV_EVENT_PORT_ERR" in own.message
    assert others.code == "PeerFailed"
    assert "IBV_WC_RETRY_EXC_ERR" in others.message
    assert "no answer after 4 tries in about 0.27 s" in others.message
    assert "RDMACOLL_IB_TIMEOUT=14 and RDMACOLL_IB_RETRY_CNT=3" in others.message


def test_a_link_returns_in_time(start: Start, wired: list[str]) -> None:
    """The peer's, before the retries end: as if nothing had been."""
    slow = {"RDMACOLL_IB_TIMEOUT": "19", "RDMACOLL_IB_RETRY_CNT": "6"}  # 15 s
    pair = Pair(start(wired[0], **slow), start(wired[1], **slow))
    pair.one.store(REGION, 0, b"through")
    pair.other.stop()  # a probe of its own would meet the link that is down
    with link_down(wired[1]):
        pair.one.ask("put", 0, REGION, 0, REGION, 0, 7, 1, LIMIT_S * 1000)
        assert not pair.one.answered(within_s=0.5)
    pair.one.answer()
    pair.other.resume()
    assert pair.other.show(REGION, 0, 7) == b"through"
    pair.other.do("put", 0, REGION, 0, REGION, 64, 7, 1, LIMIT_MS)
