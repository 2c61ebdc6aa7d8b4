"""The star of agents: what it carries, who is let in, and what becomes of forged messages.

Floor: tests.
"""

import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress

import pytest
from job_runner import wait_for
from rdmacoll.launcher.agent.rendezvous import pack as pack_cards
from rdmacoll.launcher.agent.rendezvous import unpack as unpack_cards
from rdmacoll.launcher.base.hosts import MOST_RANKS
from rdmacoll.launcher.keys.key import Key, NotOfTheJob
from rdmacoll.launcher.meet.patience import while_all_live
from rdmacoll.launcher.star import greeting, link
from rdmacoll.launcher.star.greeting import STRANGERS, dial
from rdmacoll.launcher.star.hub import AgentLost, Hub, Loss
from rdmacoll.launcher.star.link import SIGNATURE_BYTES, Kind, Link, LinkEnded
from rdmacoll.launcher.star.place import PLACE, Place
from rdmacoll.launcher.star.port import listen
from rdmacoll.launcher.star.spoke import HubLost, Spoke

KEY = Key(b"k" * 32, "run")
GREETING_BYTES = 76
SOON_S = 20.0


class Star:
    """A hub with rdmarun and agents, each in this process; poll() lets all of them hear."""

    def __init__(self, agents: int) -> None:
        socks = listen({}, only_local=True)
        self.place = Place(["127.0.0.1"], socks[0].getsockname()[1])
        self.hub = Hub(socks, KEY, agents)
        coming = threading.Thread(target=self._come, args=(agents,))
        coming.start()
        self.hub.wait_for_all()
        coming.join(SOON_S)

    def _come(self, agents: int) -> None:
        links = [self.dial(seat) for seat in range(1, agents + 1)]
        self.rdmarun = links.pop()
        self.spokes = [Spoke(one, seat, agents) for seat, one in enumerate(links, start=1)]

    def dial(self, seat: int, key: Key = KEY, seconds: float = SOON_S) -> Link:
        return dial(key, seat, self.place, time.monotonic() + seconds)

    def poll(self) -> None:
        for one in self.agents:
            one.poll()

    @property
    def agents(self) -> list[Hub | Spoke]:
        return [self.hub, *self.spokes]

    def poll_until(self, condition: Callable[[], bool]) -> None:
        def is_so() -> bool:
            self.poll()
            return condition()

        wait_for(is_so, "what the star is to do")

    def losses(self) -> list[Loss]:
        """Those that the hub notices first."""
        found: list[Loss] = []

        def noticed() -> bool:
            self.hub.poll()
            found.extend(self.hub.losses())
            return bool(found)

        wait_for(noticed, "a loss")
        return found

    def in_background(self) -> threading.Thread:
        """The hub hears those who come."""
        self.stop = threading.Event()

        def run() -> None:
            while not self.stop.wait(0.01):
                self.hub.poll()

        thread = threading.Thread(target=run)
        thread.start()
        return thread


@pytest.fixture
def star() -> Star:
    return Star(3)


def test_all_see_the_same_tables(star: Star) -> None:
    tables: list[list[list[bytes]]] = [[], [], []]

    def all_have_seen(record: bytes) -> bool:
        for agent, seen in zip(star.agents, tables, strict=True):
            while (table := agent.next_table()) is not None:
                seen.append(table)
        return all(seen and seen[-1][2] == record for seen in tables)

    for number, agent in enumerate(star.agents):
        agent.put(b"first of %d" % number)
    star.poll_until(lambda: all_have_seen(b"first of 2"))
    star.spokes[1].put(b"changed")
    star.poll_until(lambda: all_have_seen(b"changed"))
    assert tables[0] == tables[1] == tables[2]
    assert tables[0][0] == [b"first of 0", b"first of 1", b"first of 2"]
    assert tables[0][-1] == [b"first of 0", b"first of 1", b"changed"]


def test_gatherings(star: Star) -> None:
    large = [secrets.token_bytes(1 << 20) for _ in star.agents]
    each = zip(star.agents, large, strict=True)
    gatherings = [agent.begin_gathering(mine, []) for agent, mine in each]
    got: dict[int, bytes] = {}

    def all_complete() -> bool:
        for number, gathering in enumerate(gatherings):
            if number not in got and (everything := gathering.test()) is not None:
                got[number] = everything
        return len(got) == 3

    star.poll_until(all_complete)
    assert set(got.values()) == {b"".join(large)}
    assert star.hub.from_first(b"said") == b"said"
    assert [one.from_first(b"") for one in star.spokes] == [b"said"] * 2


def test_a_gathering_does_not_wait_for_a_lost_agent(star: Star) -> None:
    gathering = star.hub.begin_gathering(b"0", [])
    star.spokes[0].begin_gathering(b"1", [])
    star.poll_until(lambda: gathering.test() is None)
    star.spokes[1]._link.close()
    losses = star.losses()
    assert gathering.test() == b"01"
    assert [(loss.agent, loss.why) for loss in losses] == [(2, "its agent's connection ended")]
    assert star.hub.losses() == []


def test_a_spoke_that_loses_the_hub_says_so(star: Star) -> None:
    for one in star.hub._links.values():
        one.close()
    with pytest.raises(HubLost):
        star.poll_until(lambda: False)


def test_who_does_not_know_the_key_is_sent_away(star: Star) -> None:
    hub = star.in_background()
    try:
        for key in (Key(b"x" * 32, "run"), Key(KEY.secret, "another run")):
            with pytest.raises(OSError, match="agent 0 cannot be reached on port"):
                star.dial(1, key, seconds=0.5)
        with pytest.raises(OSError):
            star.dial(1, seconds=0.5)  # the seat is taken
        with pytest.raises(OSError):
            star.dial(9, seconds=0.5)  # there is none
    finally:
        star.stop.set()
        hub.join(SOON_S)
    assert star.hub.losses() == []


@pytest.mark.parametrize("says", [b"", b"GET / HTTP/1.1\r\n\r\n", b"x" * 100_000])
def test_strangers_cost_little(star: Star, says: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many at a time, and a few bytes of each; the next sends the first away."""
    with ExitStack() as strangers:
        for _ in range(STRANGERS + 20):
            sock = socket.create_connection(("127.0.0.1", star.place.port))
            strangers.enter_context(sock)
            sock.setblocking(False)
            with suppress(OSError):
                sock.send(says)
            star.poll()
            held = star.hub._listener._strangers
            assert len(held) <= STRANGERS
            assert all(len(stranger.said) <= GREETING_BYTES for stranger in held)
        monkeypatch.setattr(greeting, "GREETING_S", 0.0)
        for stranger in star.hub._listener._strangers:
            stranger.until = 0.0
        star.poll()
        assert star.hub._listener._strangers == []
    assert star.hub.losses() == []


def read(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (part := sock.recv(count - len(data))):
        data += part
    return data


def test_a_repeated_greeting_is_refused() -> None:
    """What the second one says, the first has said, to another nonce."""
    with closing(listen({}, only_local=True)[0]) as sock:
        hub_side: list[bytes] = []

        def stand_between() -> None:
            caller, _ = sock.accept()
            with caller:
                caller.sendall(b"n" * 32)
                hub_side.append(read(caller, GREETING_BYTES))

        thread = threading.Thread(target=stand_between)
        thread.start()
        with pytest.raises(OSError):
            place = Place(["127.0.0.1"], sock.getsockname()[1])
            dial(KEY, 1, place, time.monotonic())
        thread.join(SOON_S)
    star = Star(3)
    star.spokes[0]._link.close()
    assert [loss.agent for loss in star.losses()] == [1]
    hub = star.in_background()
    try:
        with socket.create_connection(("127.0.0.1", star.place.port)) as again:
            read(again, 32)
            again.sendall(hub_side[0])
            assert again.recv(1) == b""
    finally:
        star.stop.set()
        hub.join(SOON_S)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Link]]:
    """What the hub's end of a connection says is for the test to pass on, to the other end."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    with ours, theirs:
        yield ours, Link(theirs, b"key", from_hub=False)


def said_by_hub(*messages: tuple[Kind, bytes]) -> list[bytes]:
    """The bytes of each message."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    with ours, theirs:
        hub, said = Link(theirs, b"key", from_hub=True), []
        for kind, body in messages:
            hub.send(kind, body)
            said.append(read(ours, 5 + len(body) + SIGNATURE_BYTES))
        return said


def hear(spoke: Link, count: int) -> list[tuple[Kind, bytes]]:
    heard: list[tuple[Kind, bytes]] = []

    def all_are_here() -> bool:
        heard.extend(spoke.receive())
        return len(heard) >= count

    wait_for(all_are_here, "messages")
    return heard


MESSAGES = [(Kind.TABLE, b"one"), (Kind.TURN, b"two"), (Kind.BEAT, b"")]


def test_messages_come_as_they_were_said(ends: tuple[socket.socket, Link]) -> None:
    for byte in b"".join(said_by_hub(*MESSAGES)):  # also one by one
        ends[0].sendall(bytes([byte]))
    assert hear(ends[1], 3) == MESSAGES


@pytest.mark.parametrize("at", range(0, 5 + 3 + SIGNATURE_BYTES))
def test_a_changed_byte_ends_the_link(ends: tuple[socket.socket, Link], at: int) -> None:
    """Of the length, too: at most it waits for more bytes, which are then not signed so."""
    first, second, third = said_by_hub(*MESSAGES)
    changed = bytearray(first)
    changed[at] ^= 1
    ends[0].sendall(bytes(changed) + second + third)
    ends[0].shutdown(socket.SHUT_WR)
    with pytest.raises(LinkEnded):
        hear(ends[1], 1)


@pytest.mark.parametrize("order", [[0, 0], [1], [0, 2], [1, 0]])
def test_a_repeated_or_left_out_message_ends_the_link(
    ends: tuple[socket.socket, Link], order: list[int]
) -> None:
    said = said_by_hub(*MESSAGES)
    ends[0].sendall(b"".join(said[number] for number in order))
    with pytest.raises(LinkEnded, match="somebody on the way has changed"):
        hear(ends[1], 3)


def test_a_message_that_is_sent_back_ends_the_link(ends: tuple[socket.socket, Link]) -> None:
    ends[1].send(Kind.RECORD, b"mine")
    ends[0].sendall(read(ends[0], 5 + 4 + SIGNATURE_BYTES))
    with pytest.raises(LinkEnded, match="somebody on the way has changed"):
        hear(ends[1], 1)


def test_the_cards_of_the_largest_group_pass(star: Star) -> None:
    cards = {rank: rank.to_bytes(4, "little") * 100 for rank in range(MOST_RANKS)}
    parts = [{rank: cards[rank] for rank in range(agent, MOST_RANKS, 3)} for agent in range(3)]
    gatherings = [
        agent.begin_gathering(pack_cards(part), [])
        for agent, part in zip(star.agents, parts, strict=True)
    ]
    wholes: dict[int, bytes] = {}

    def all_have_come() -> bool:
        for number, gathering in enumerate(gatherings):
            if number not in wholes and (whole := gathering.test()) is not None:
                wholes[number] = whole
        return len(wholes) == star.hub.size

    star.poll_until(all_have_come)
    assert all(unpack_cards(whole) == cards for whole in wholes.values())


def test_no_more_is_waited_for_than_the_longest_message(ends: tuple[socket.socket, Link]) -> None:
    ends[0].sendall(struct.pack("<IB", link.BODY_LIMIT_BYTES + 1, Kind.TABLE))
    with pytest.raises(LinkEnded):
        hear(ends[1], 1)


def test_silence_is_noticed_and_beats_are_none(star: Star, monkeypatch: pytest.MonkeyPatch) -> None:
    """The beats come from threads; agent 2's is stopped with its link's lock."""
    monkeypatch.setattr(link, "SILENCE_S", 2.5)
    with star.spokes[1]._link._lock:
        losses = star.losses()
    assert [loss.agent for loss in losses] == [2]
    assert "has said nothing" in losses[0].why


def test_nobody_is_let_in_after_the_start(star: Star) -> None:
    star.hub.admit_no_more()
    with pytest.raises(OSError, match="Connection refused"):
        star.dial(1, seconds=0.1)
    star.hub.poll()
    assert star.hub.losses() == []


def test_who_is_back_is_told_what_it_has_missed(star: Star) -> None:
    for number, agent in enumerate(star.agents):
        agent.put(b"%d" % number)
    star.poll_until(lambda: star.hub.next_table() is not None)
    star.spokes[1]._link.close()
    assert [loss.agent for loss in star.losses()] == [2]
    star.spokes.pop()
    star.hub.put_for(2, b"lost")
    hub = star.in_background()
    back = Spoke(star.dial(2), 2, 3)
    star.stop.set()
    hub.join(SOON_S)
    assert (star.hub.returned, star.hub.is_short) == ([2], True)
    assert star.hub.next_table() == [b"0", b"1", b"lost"]
    star.hub.welcome(b"missed")
    assert (star.hub.returned, star.hub.is_short) == ([], False)
    assert back.wait_for_welcome() == b"missed"
    back.put(b"back")
    star.spokes.append(back)
    tables: list[list[bytes]] = []

    def has_table() -> bool:
        star.hub.next_table()
        tables.extend(filter(None, [back.next_table()]))
        return bool(tables)

    star.poll_until(has_table)
    assert tables[-1] == [b"0", b"1", b"back"]


def test_the_place_of_agent_0_is_signed() -> None:
    place = Place(["nodeA", "10.0.0.1"], 20000)
    line = place.to_line(KEY)
    assert Place.from_line(b"motd: " + line, KEY) == place
    with pytest.raises(NotOfTheJob):
        Place.from_line(line.replace(b"nodeA", b"nodeX"), KEY)
    with pytest.raises(NotOfTheJob):
        Place.from_line(PLACE + b"\n", KEY)


def test_who_waits_for_mpi_hears_of_a_lost_agent(star: Star) -> None:
    waits = threading.Event()
    star.spokes[1]._link.close()
    with pytest.raises(AgentLost, match="connection ended") as lost:
        while_all_live(star.hub, waits.wait)
    assert lost.value.agent == 2
    waits.set()


def test_who_waits_for_mpi_gets_what_it_says(star: Star) -> None:
    def fails() -> None:
        raise ArithmeticError

    assert while_all_live(star.spokes[0], lambda: "met") == "met"
    with pytest.raises(ArithmeticError):
        while_all_live(star.spokes[0], fails)
