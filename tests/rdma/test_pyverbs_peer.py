"""An independent peer, written with pyverbs, against our region: what the right key allows lands,
anything else is refused, and costs nobody else anything.

Floor: tests.
"""

from collections.abc import Callable, Iterator

import pytest
from transport_shell import Refused, TransportShell
from verbs_wire import (
    LINE_BYTES,
    MARK,
    NOTICE_REGION,
    RECEIVE_BATCH,
    RECEIVE_DEPTH,
    REGION_CLOSED,
    Key,
    SignalRecord,
    immediate,
)

pytest.importorskip(
    "pyverbs.device", reason="pyverbs is missing: apt-get install python3-pyverbs, .ci/link-pyverbs"
)
import pyverbs.enums as e  # noqa: E402
from pyverbs_peer import Peer  # noqa: E402

REGION = 7
REGION_BYTES = 1 << 20
FOR_READING = 8
LIMIT_MS = 10_000

Start = Callable[..., TransportShell]


class Met:
    """Our process, which lends its region, and peers that have met it."""

    def __init__(self, shell: TransportShell, device: str) -> None:
        self.shell = shell
        self.key = Key.unpack(shell.make(REGION, REGION_BYTES))
        self._device = device
        self._peers: list[Peer] = []

    def peer(self, stripes: int = 1) -> tuple[Peer, int]:
        """One more, and how our process calls it."""
        peer = Peer(self._device, stripes=stripes)
        self._peers.append(peer)
        number = peer.meet(self.shell)
        self.shell.do("offer", number, REGION)
        return peer, number

    def end(self) -> None:
        for peer in self._peers:
            peer.close()


@pytest.fixture
def met(start: Start, devices: list[str]) -> Iterator[Met]:
    """On different devices, where there are two."""
    met = Met(start(devices[0]), devices[-1])
    yield met
    met.end()


@pytest.fixture
def striped(start: Start, devices: list[str]) -> Iterator[Met]:
    """With two queue pairs per peer."""
    met = Met(start(devices[0], RDMACOLL_IB_QPS="2"), devices[-1])
    yield met
    met.end()


def test_a_write_with_the_key_lands(met: Met) -> None:
    peer, _ = met.peer()
    data = bytes(range(256)) * 64
    assert peer.write(data, met.key.address + 4096, met.key.rkey) == e.IBV_WC_SUCCESS
    last = met.key.address + REGION_BYTES - 1
    assert peer.write(b"\xaa", last, met.key.rkey) == e.IBV_WC_SUCCESS
    # Done at the sender, whose device was told that the receiver's has it.
    assert met.shell.show(REGION, 4095, len(data) + 2) == b"\0" + data + b"\0"
    assert met.shell.show(REGION, REGION_BYTES - 2, 2) == b"\0\xaa"


def test_a_read_gives_what_is_there(met: Met) -> None:
    peer, _ = met.peer()
    data = bytes(range(256))
    met.shell.store(REGION, 12345, data)
    status, read = peer.read(len(data) + 2, met.key.address + 12344, met.key.rkey)
    assert status == e.IBV_WC_SUCCESS
    assert read == b"\0" + data + b"\0"


def test_a_letter_shows_in_the_line(met: Met) -> None:
    """Behind a write, which is there when the line is."""
    peer, number = met.peer()
    assert peer.write(b"payload", met.key.address + 8192, met.key.rkey) == e.IBV_WC_SUCCESS
    record = SignalRecord(
        counter=1 << 40, signature=77, size=7, inline_data=bytes(range(44)), credit=9
    )
    assert peer.signal(met.key, 128, record) == e.IBV_WC_SUCCESS
    met.shell.do("await", number, REGION, 128, 1 << 40, LIMIT_MS)
    assert met.shell.line(REGION, 128) == (1 << 40, 77, 7, bytes(range(44)), 9)
    assert met.shell.show(REGION, 8192, 7) == b"payload"
    assert met.shell.line(REGION, 64).counter == met.shell.line(REGION, 192).counter == 0


def test_letters_go_round_the_mailbox(met: Met) -> None:
    """More of them than it has places: each stays inside the room that it was told of."""
    peer, number = met.peer()
    count = 3 * RECEIVE_DEPTH
    for counter in range(1, count + 1):
        assert peer.signal(met.key, 0, SignalRecord(counter)) == e.IBV_WC_SUCCESS
        if counter % (RECEIVE_DEPTH // 2) == 0:
            met.shell.do("await", number, REGION, 0, counter, LIMIT_MS)
    assert met.shell.line(REGION, 0).counter == count


def test_a_letter_waits_for_its_mark(striped: Met) -> None:
    peer, number = striped.peer(stripes=2)
    assert peer.signal(striped.key, 0, SignalRecord(1)) == e.IBV_WC_SUCCESS
    striped.shell.do("await", number, REGION, 0, 1, LIMIT_MS)
    assert peer.signal(striped.key, 0, SignalRecord(2, stripes=0b10)) == e.IBV_WC_SUCCESS
    assert peer.signal(striped.key, 64, SignalRecord(9)) == e.IBV_WC_SUCCESS
    with pytest.raises(Refused, match="Timeout"):
        striped.shell.do("await", number, REGION, 64, 9, 300)  # nor does what is behind it
    assert striped.shell.line(REGION, 0).counter == 1
    assert peer.notify(immediate(NOTICE_REGION, MARK), stripe=1) == e.IBV_WC_SUCCESS
    striped.shell.do("await", number, REGION, 64, 9, LIMIT_MS)
    assert striped.shell.line(REGION, 0).counter == 2


def test_our_letter_tells_of_marks(striped: Met) -> None:
    """Where a put was cut in two, and there only."""
    peer, number = striped.peer(stripes=2)
    data = bytes(range(256)) * 512
    striped.shell.do("open", number, peer.key(3).hex())
    striped.shell.store(REGION, 0, data)
    for size, stripes in ((4096, 0), (len(data), 0b10)):
        striped.shell.do("put", number, REGION, 0, 3, 0, size, 1, LIMIT_MS)
        assert striped.shell.do("signal", number, 3, 0, size, 1) == "1"
        _, record = peer.take_signal()
        assert (record.counter, record.stripes) == (size, stripes)
        marks = [(NOTICE_REGION, MARK)] if stripes else []
        assert peer.arrivals_on(stripe=1, count=len(marks)) == marks
        assert peer.region.read(size, 0) == data[:size]


def test_our_put_and_get_move_its_memory(met: Met) -> None:
    peer, number = met.peer()
    data = bytes(range(256)) * 512
    met.shell.do("open", number, peer.key(3).hex())
    met.shell.store(REGION, 0, data)
    met.shell.do("put", number, REGION, 0, 3, 4096, len(data), 1, LIMIT_MS)
    assert peer.region.read(len(data) + 2, 4095) == b"\0" + data + b"\0"
    assert met.shell.do("signal", number, 3, 640, 5, 1) == "1"
    place, record = peer.take_signal()
    assert place == (3, 10)
    assert (record.counter, record.signature, record.size) == (5, 5, 6)

    peer.region.write(b"from pyverbs", 12, 0)
    met.shell.do("get", number, REGION, 512 * 1024, 3, 0, 12, 1, LIMIT_MS)
    assert met.shell.show(REGION, 512 * 1024, 12) == b"from pyverbs"


def wrong_key(met: Met, peer: Peer) -> int:
    return peer.write(b"x", met.key.address, met.key.rkey ^ 0x100)


def one_byte_beyond(met: Met, peer: Peer) -> int:
    return peer.write(b"xy", met.key.address + REGION_BYTES - 1, met.key.rkey)


def one_byte_before(met: Met, peer: Peer) -> int:
    return peer.write(b"xy", met.key.address - 1, met.key.rkey)


def read_with_wrong_key(met: Met, peer: Peer) -> int:
    return peer.read(1, met.key.address, met.key.rkey ^ 0x100)[0]


def read_beyond(met: Met, peer: Peer) -> int:
    return peer.read(2, met.key.address + REGION_BYTES - 1, met.key.rkey)[0]


def expect_lost(met: Met, number: int) -> None:
    """Ours is told, and does not wait for that peer any more."""
    with pytest.raises(Refused, match="PeerFailed") as refused:
        met.shell.do("await", number, REGION, 0, 1, LIMIT_MS)
    assert "pid 0 on host written-with-pyverbs" in refused.value.message
    assert f"over {met.shell.device} port 1" in refused.value.message


@pytest.mark.parametrize(
    "attempt", [wrong_key, one_byte_beyond, one_byte_before, read_with_wrong_key, read_beyond]
)
def test_anything_else_is_refused(met: Met, attempt: Callable[[Met, Peer], int]) -> None:
    good, good_number = met.peer()
    bad, bad_number = met.peer()
    assert attempt(met, bad) == e.IBV_WC_REM_ACCESS_ERR
    expect_lost(met, bad_number)
    # Nothing has landed, and others go on.
    assert met.shell.show(REGION, 0, REGION_BYTES) == bytes(REGION_BYTES)
    assert good.write(b"good", met.key.address, met.key.rkey) == e.IBV_WC_SUCCESS
    assert good.signal(met.key, 64, SignalRecord(1)) == e.IBV_WC_SUCCESS
    met.shell.do("await", good_number, REGION, 64, 1, LIMIT_MS)
    assert met.shell.show(REGION, 0, 4) == b"good"


def test_memory_for_reading_is_read_by_its_key_and_not_written(met: Met) -> None:
    good, good_number = met.peer()
    bad, bad_number = met.peer()
    data = bytes(range(256)) * 16
    key = Key.unpack(met.shell.make(FOR_READING, len(data), for_reading=True))
    met.shell.store(FOR_READING, 0, data)
    for peer in (good, bad):
        assert peer.read(len(data), key.address, key.rkey) == (e.IBV_WC_SUCCESS, data)
    # A letter is a write of the signal ring, which its owner does not carry on from there.
    assert good.signal(key, 0, SignalRecord(1)) == e.IBV_WC_SUCCESS
    assert good.signal(met.key, 64, SignalRecord(1)) == e.IBV_WC_SUCCESS
    met.shell.do("await", good_number, REGION, 64, 1, LIMIT_MS)
    assert bad.write(b"x", key.address, key.rkey) == e.IBV_WC_REM_ACCESS_ERR
    expect_lost(met, bad_number)
    assert met.shell.show(FOR_READING, 0, len(data)) == data
    assert good.read(len(data), key.address, key.rkey) == (e.IBV_WC_SUCCESS, data)


def test_a_region_that_was_released_is_refused(met: Met) -> None:
    """But not before the peer that it was lent to has given it back."""
    peer, number = met.peer()
    assert peer.write(b"one", met.key.address, met.key.rkey) == e.IBV_WC_SUCCESS
    met.shell.do("release", REGION)
    assert peer.write(b"two", met.key.address, met.key.rkey) == e.IBV_WC_SUCCESS

    other = Key.unpack(met.shell.make(REGION + 1, 4096))
    notices = met.key._replace(region=NOTICE_REGION)
    closed = SignalRecord(met.key.generation, size=REGION)
    assert peer.signal(notices, REGION_CLOSED * LINE_BYTES, closed) == e.IBV_WC_SUCCESS
    assert peer.signal(other, 0, SignalRecord(1)) == e.IBV_WC_SUCCESS
    met.shell.do("await", number, REGION + 1, 0, 1, LIMIT_MS)  # so the notice was taken, too
    met.shell.do("status", number)
    assert peer.write(b"three", met.key.address, met.key.rkey) == e.IBV_WC_REM_ACCESS_ERR
    with pytest.raises(Refused, match="PeerFailed"):
        met.shell.do("await", number, REGION + 1, 0, 2, LIMIT_MS)


def test_beyond_the_window_the_receiver_is_not_ready(met: Met) -> None:
    """A sender that does not count meets the device's own refusal; ours counts, and never does."""
    careless, careless_number = met.peer()
    careful, careful_number = met.peer()
    met.shell.stop()
    room = RECEIVE_DEPTH + RECEIVE_BATCH
    for counter in range(1, room + 2):
        careless.post_signal(met.key, 0, SignalRecord(counter))
    statuses = careless.finish_signals(room + 1)
    met.shell.resume()
    assert statuses == [e.IBV_WC_SUCCESS] * room + [e.IBV_WC_RNR_RETRY_EXC_ERR]
    # Its connection is over, which our side learns when it asks; the other's is not.
    with pytest.raises(Refused, match="PeerFailed"):
        met.shell.do("await", careless_number, REGION, 128, 1, LIMIT_MS)
    assert careful.signal(met.key, 64, SignalRecord(1)) == e.IBV_WC_SUCCESS
    met.shell.do("await", careful_number, REGION, 64, 1, LIMIT_MS)
