"""What servers and workers tell each other through the job's Store: where the servers are, which of
them has which bucket, and which tables there are. All of it is signed."""

from __future__ import annotations

import base64
import datetime
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Any, NoReturn

import torch.distributed as dist

from .._agent import Agent, own_agent
from .._extension import extension
from .._words import Words
from ..servers.options import NO_RUN_ID
from ..servers.status import ServerStatus
from .freeing.drops import Drops

# What workers must say alike when they make tables.
LAYOUT = "layout"  # of the parameters of a ps.Optimizer
PACE = "pace"  # of rows
GENERATION = "generation"  # of workers that go in step

START = "start"  # where ranks of rdmarun leave the id of their start
DROPPED = "dropped"  # in the place of a word about what is no more
PAUSE_S = 0.005  # between looks: the Store's own wait cannot be interrupted


@dataclass(frozen=True)
class Table:
    """A table as the first worker that named it has described it."""

    number: int
    spec: bytes  # as the engine encodes it
    shape: tuple[int, ...]  # of a dense table; of rows: the shape of one

    def to_word(self) -> str:
        return json.dumps([self.number, _encoded(self.spec), list(self.shape)])

    @staticmethod
    def from_word(word: str) -> Table:
        number, spec, shape = json.loads(word)
        return Table(number, _decoded(spec), tuple(shape))


@dataclass(frozen=True)
class Generation:
    """So many workers go in step in these tables. Servers refuse those of an earlier one."""

    number: int
    workers: int
    tables: tuple[int, ...]
    has_begun: bool = True  # servers know of it

    def to_word(self) -> str:
        return json.dumps([self.number, self.workers, self.tables, self.has_begun])

    @staticmethod
    def from_word(word: str) -> Generation:
        number, workers, tables, has_begun = json.loads(word)
        return Generation(number, workers, tuple(tables), has_begun)


@dataclass(frozen=True)
class Servers:
    """What all servers of a job must say alike."""

    count: int
    replicas: int  # of each bucket, where there are as many servers

    def to_word(self) -> str:
        return f"{self.count} {self.replicas}"

    @staticmethod
    def from_word(word: str) -> Servers:
        count, _, replicas = word.partition(" ")
        return Servers(int(count), int(replicas))


@dataclass(frozen=True)
class Place:
    """Where a job's Store is, and the job's id; None: as the environment or the Store says."""

    host: str
    port: int
    run_id: str | None = None


class Board:
    def __init__(self, timeout: float, place: Place | None = None) -> None:
        """timeout: in seconds, of a single look at the Store. place: None: of this process's job.
        Raises ValueError where the environment names no Store."""
        agent = own_agent()
        if place is None:
            place = _from_environment() if agent is None else _of(agent)
        self.address = f"{place.host}:{place.port}"
        self.store = dist.TCPStore(
            place.host, place.port, is_master=False, timeout=datetime.timedelta(seconds=timeout)
        )
        self._store = dist.PrefixStore("rdmacoll.ps", self.store)
        start = place.run_id or _start_of(self._store)
        if agent is not None:
            self._store.set(START, start)
        self._servers: Servers | None = None
        self.words = Words(self._store, start, lambda text: extension().sign(text))
        self.drops = Drops(self.words)

    # --- the job ------------------------------------------------------------------------------

    def agree(self, job: Servers) -> Servers:
        """What the first server has said of all of them, the same for all."""
        return Servers.from_word(self.words.say_first("job", job.to_word()))

    def servers(self) -> Servers | None:
        """None: no server has come yet. What the first one has said stays so."""
        if self._servers is None:
            word = self.words.hear("job")
            self._servers = None if word is None else Servers.from_word(word)
        return self._servers

    def wait_servers(self, deadline: float) -> Servers:
        return Servers.from_word(self._wait("job", deadline, "no server of this job has started"))

    def wait_map(self, deadline: float) -> bytes:
        return _decoded(self._wait("map", deadline, "no server of this job has started"))

    # --- servers ------------------------------------------------------------------------------

    def count_servers(self) -> int:
        """With those that have joined; their numbers follow. Servers have agreed before."""
        job = self.servers()
        return 0 if job is None else job.count + self.count("joined")

    def next_server(self) -> int:
        """The number of one that joins."""
        job = self.servers()
        assert job is not None
        return job.count + self.next_number("joined") - 1

    def next_start(self, server: int) -> int:
        """How often this was asked for this server before."""
        return self.next_number(f"starts/{server}") - 1

    def is_claimed(self, server: int) -> bool:
        return self.words.hear(f"claim/{server}") is not None

    def claim(self, server: int, start: int) -> bool:
        """From now on no earlier start is this server; False: a later one is."""
        return self._say_later(f"claim/{server}", start, str(start))

    def holds(self, server: int, start: int) -> bool:
        """Whether no later start is this server."""
        return self.words.hear(f"claim/{server}") == str(start)

    def say_server(self, server: int, start: int, address: bytes) -> None:
        """Does nothing where a later start has said it."""
        self._say_later(f"server/{server}", start, f"{start} {_encoded(address)}")

    def _say_later(self, key: str, start: int, word: str) -> bool:
        """word: begins with the start."""
        said = self.words.say_first(key, word)
        while said != word:
            if int(said.partition(" ")[0]) > start:
                return False
            said = self.words.change(key, said, word)
        return True

    def say_status(self, status: ServerStatus) -> None:
        self.words.say(f"status/{status.number}", status.to_word())

    def status_of(self, server: int) -> ServerStatus:
        word = self.words.hear(f"status/{server}")
        return ServerStatus(server) if word is None else ServerStatus.from_word(word)

    def wait_server(self, server: int, deadline: float) -> tuple[bytes, int]:
        """Its address, and how often it was started before; waits until it has said so."""
        why_not = f"server {server} has not started"
        return _server_of(self._wait(f"server/{server}", deadline, why_not))

    def find_server(self, server: int) -> tuple[bytes, int] | None:
        """The same now; None: it has not started yet."""
        word = self.words.hear(f"server/{server}")
        return None if word is None else _server_of(word)

    def beat(self, server: int) -> None:
        self._store.add(f"beats/{server}", 1)

    def beats_of(self, server: int) -> int:
        return int(self._store.add(f"beats/{server}", 0))

    def first_map(self, servers: int, replicas: int, hosts: list[int]) -> bytes:
        """The map of buckets that whoever was first has made; all have the same one.

        hosts: of each server a number; empty: it is not known."""
        mine = extension().ps_spread(servers, replicas, hosts)
        return _decoded(self.words.say_first("map", _encoded(mine)))

    def newest_map(self) -> bytes:
        """Raises LookupError where there is none yet."""
        word = self.words.hear("map")
        if word is None:
            raise LookupError("no server has started yet")
        return _decoded(word)

    def change_map(self, known: bytes, wanted: bytes) -> bytes:
        """Makes this the map unless another one is known by now; the newest one."""
        return _decoded(self.words.change("map", _encoded(known), _encoded(wanted)))

    # --- tables -------------------------------------------------------------------------------

    def add_table(
        self, name: str, spec: bytes, shape: tuple[int, ...], about: list[str]
    ) -> tuple[Table, bool]:
        """The table of this name, and whether this worker was the first to name it.

        about: its kind and its optimizer, for people.
        """
        known = self.find_table(name)
        if known is not None:
            return known, False
        mine = Table(self.next_number("tables"), spec, shape)
        said = Table.from_word(self._say_first(f"table/{name}", mine.to_word()))
        if said == mine:
            self.words.say(f"about/{mine.number}", json.dumps([name, *about, list(shape)]))
        return said, said == mine

    def find_table(self, name: str) -> Table | None:
        word = self.words.hear(f"table/{name}")
        return None if word in (None, DROPPED) else Table.from_word(word)

    def about_tables(self) -> Iterator[tuple[int, list[Any]]]:
        """The number of each table; its name, kind, optimizer and shape."""
        for number in range(1, self.count("tables") + 1):
            word = self.words.hear(f"about/{number}")
            # None: another worker was first with a table of that name.
            if word not in (None, DROPPED):
                yield number, json.loads(word)

    def first_word(self, of: str, name: str, word: str) -> str:
        """What the first one that came here has said of this table, or of these tables."""
        return self._say_first(f"word/{of}/{name}", word)

    def generation(self, name: str) -> Generation | None:
        """The last one of the workers that go in step in what has this name."""
        word = self.words.hear(f"word/{GENERATION}/{name}")
        return None if word in (None, DROPPED) else Generation.from_word(word)

    def next_generation(self, name: str) -> int:
        return self.next_number(f"generations/{name}")

    def next_number(self, of: str, count: int = 1) -> int:
        """The last one of so many that nobody else gets."""
        return int(self._store.add(of, count))

    def count(self, of: str) -> int:
        """The last next_number() of these."""
        return int(self._store.add(of, 0))

    def change_generation(self, name: str, known: Generation | None, wanted: Generation) -> bool:
        """Makes this the last one; False: another one is that by now."""
        key, word = f"word/{GENERATION}/{name}", wanted.to_word()
        if known is None:
            return self._say_first(key, word) == word
        return self.words.change(key, known.to_word(), word) == word

    def say_ready(self, table: int) -> None:
        self.words.say(f"ready/{table}", "")

    def is_ready(self, table: int) -> bool:
        """Whether a dense one has its first values."""
        return self.words.hear(f"ready/{table}") is not None

    def wait_ready(self, table: int, name: str, deadline: float) -> None:
        self._wait(
            f"ready/{table}",
            deadline,
            f"the worker that was first to call init({name!r}) has not given the table its values",
        )

    def _say_first(self, key: str, word: str) -> str:
        """As Words.say_first(), also behind a word about what was dropped."""
        said = self.words.say_first(key, word)
        while said == DROPPED:
            said = self.words.change(key, DROPPED, word)
        return said

    def _wait(self, key: str, deadline: float, why_not: str) -> str:
        while True:
            word = self.words.hear(key)
            if word is not None:
                return word
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{why_not} in time")
            time.sleep(PAUSE_S)


class NotAStore(Exception):
    """Who listens there does not answer. A thread still waits for it: leave_at_once()."""


def leave_at_once(status: int) -> NoReturn:
    """Ends the process where threads may wait in torch: one that got its answer while Python ends
    would abort the process."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def reach(timeout: float, answers_within: float, place: Place | None = None) -> Board:
    """The Board of a Store that is there. Raises NotAStore: TCPStore itself waits for ever for
    somebody who listens and says nothing. Both in seconds."""
    made: Future[Board] = Future()

    def make() -> None:
        try:
            made.set_result(Board(timeout, place))
        except BaseException as error:
            made.set_exception(error)

    threading.Thread(target=make, daemon=True).start()
    try:
        return made.result(answers_within)
    except FutureTimeout:
        raise NotAStore(
            f"what listens at the address of the job's Store has not answered as a Store in "
            f"{answers_within:g} s"
        ) from None


def _encoded(word: bytes) -> str:
    return base64.b64encode(word).decode()


def _decoded(word: str) -> bytes:
    return base64.b64decode(word)


def _server_of(word: str) -> tuple[bytes, int]:
    start, _, address = word.partition(" ")
    return _decoded(address), int(start)


def _of(agent: Agent) -> Place:
    own = agent.identity
    return Place(own.master_addr, own.master_port, own.start)


def _start_of(store: dist.Store) -> str:
    """For words of a job whose id nobody has told this process. rdmarun draws one for each start,
    and its ranks leave it in the Store. It need not be signed: under a wrong one no word holds."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return os.environ["TORCHELASTIC_RUN_ID"]
    if not store.check([START]):
        return NO_RUN_ID
    said = store.get(START)
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _from_environment() -> Place:
    address, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
    if not address or not port.isdecimal():
        raise ValueError(
            f"MASTER_ADDR={address!r} and MASTER_PORT={port!r} name no Store; start the program "
            "with rdmarun or torchrun"
        )
    return Place(address, int(port), os.environ.get("TORCHELASTIC_RUN_ID"))
