"""A published state, as others read it: whole, or what this rank has of a sharded module.

What each owner has is read as a whole version of its own. It stays while those are read again that
had an older version. So parts of one version come together, however far the owners are apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from ..memory.checks import check_name, check_timeout
from ..memory.errors import PeerError
from ..memory.kind import decode
from ..memory.opening import DEFAULT_TIMEOUT_S, Owner, RemoteTensor, open_raw, owner_of
from ..memory.process import backend, face
from ..memory.works import RemoteWork, nothing
from .parts import Part
from .reading import Reading
from .sharding import State, form_of, like, mesh_of, on_all, part_of
from .table import Table, table_name

if TYPE_CHECKING:
    from ... import _C

LOOK_AGAIN_S = 0.001


class Deadline:
    def __init__(self, timeout: float) -> None:
        self.timeout = timeout  # in seconds
        self._end = time.monotonic() + timeout

    def left(self) -> float:
        return max(self._end - time.monotonic(), 0.0)


class Subscription:
    """Other processes' publication, as this one reads it. As subscribe() makes it."""

    def __init__(
        self,
        name: str,
        contact: Owner,
        name_rank: Callable[[int], str],
        deadline: Deadline,
        group: dist.ProcessGroup | None,
    ) -> None:
        """contact: one of the owners. name_rank: gives a rank of theirs the name for people."""
        self.name = name
        self.version = 0  # that the last read() has read
        self._face = face(group)
        self._reading: Reading | None = None
        self._read_for: object = None
        self._table = _read_table(name, contact, deadline, group)
        self._owners = [Owner(address, name_rank(rank)) for rank, address in self._table.owners]
        if len(self._owners) == 1:
            self._owners = [contact]
        self._opened: dict[int, _C.RemoteOpened] = {}
        for place in self._table.needed():
            self._opened[place] = self._open(place, deadline, group)

    def read(
        self, newer: bool = False, timeout: float = DEFAULT_TIMEOUT_S
    ) -> dict[str, torch.Tensor]:
        """The newest version, whole, as views of memory that the next read() writes anew.

        newer: waits for a version newer than the last that was read. `version` says which it is.
        timeout: in seconds. One thread at a time. Raises TimeoutError if there is none in time,
        RevokedError, PeerError.
        """
        check_timeout(timeout)
        deadline = Deadline(timeout)
        if self._reading is None or self._read_for is not None:
            tensors = self._table.tensors.items()
            wholes = {key: Part.whole(its.kind.shape) for key, its in tensors}
            self._reading, self._read_for = Reading(self._table, wholes, self._allocate), None
        self._reading.begin()
        self.version = self._bring(self._reading, self.version + 1 if newer else 1, deadline)
        return self._reading.result()

    def load_into(
        self, module: torch.nn.Module, newer: bool = False, timeout: float = DEFAULT_TIMEOUT_S
    ) -> int:
        """Copies the newest version into the module's state; returns its number. As read().

        Of DTensors only the rows are read that this rank has; the state may be published with other
        placements, or with none. All ranks of their mesh call this together, and get one version.
        Raises ValueError for a module with other names or shapes.
        """
        check_timeout(timeout)
        deadline = Deadline(timeout)
        state = module.state_dict()
        mesh = mesh_of(state)
        on_all(mesh, lambda: self._parts_of(state).begin())
        least, versions = self.version + 1 if newer else 1, [0]
        while min(versions) < least:
            versions = on_all(mesh, partial(self._bring, self._parts_of(state), least, deadline))
            least = max(versions)
        self.version = least
        parts = self._parts_of(state).result()
        module.load_state_dict({key: like(parts[key], tensor) for key, tensor in state.items()})
        return self.version

    def _parts_of(self, state: State) -> Reading:
        self._check(state)
        forms = {key: form_of(tensor) for key, tensor in state.items()}
        if self._reading is None or self._read_for != forms:
            parts = {key: part_of(f"state[{key!r}]", tensor) for key, tensor in state.items()}
            self._reading, self._read_for = Reading(self._table, parts, self._allocate), forms
        return self._reading

    def _bring(self, reading: Reading, least: int, deadline: Deadline) -> int:
        """Reads until all is of one version, this one or a newer; returns it."""
        have = reading.versions
        target = least
        while True:
            before = dict(have)
            behind = [owner for owner, version in have.items() if version < target]
            self._read_newest(reading, behind, target - 1, deadline)
            target = max(target, *have.values())
            if min(have.values()) == target:
                return target
            if deadline.left() == 0:
                raise self._late(least, deadline, self._seen(reading))
            if have == before:
                time.sleep(LOOK_AGAIN_S)

    def _read_newest(
        self, reading: Reading, owners: list[int], newer_than: int, deadline: Deadline
    ) -> None:
        """Of all these owners at once, where there is a newer one."""
        try:
            works = {
                owner: self._opened[owner].snapshot(
                    reading.memory, reading.parts[owner], newer_than, deadline.left()
                )
                for owner in owners
            }
            for owner, work in works.items():
                with _naming(self._owners[owner]):
                    RemoteWork(work, nothing).wait()
                reading.versions[owner] = work.result() or reading.versions[owner]
        except BaseException as error:
            self._reading = None  # what is under way may write to its memory still
            if isinstance(error, TimeoutError):
                raise self._late(newer_than + 1, deadline, str(error)) from error
            raise

    def _late(self, least: int, deadline: Deadline, why: str) -> TimeoutError:
        return TimeoutError(
            f"no version of {self.name!r} newer than {least - 1} came whole within "
            f"{deadline.timeout} s: {why}"
        )

    def _seen(self, reading: Reading) -> str:
        seen = ", ".join(
            f"{self._owners[owner].who} had {version or 'none'}"
            for owner, version in reading.versions.items()
        )
        return (
            f"{seen}; each rank that publishes has to call update() at the same steps, and no "
            "sooner again than its part can be read"
        )

    def _allocate(self, bytes: int) -> torch.Tensor:
        return self._face.allocate(bytes, False)  # the device knows it

    def _open(
        self, place: int, deadline: Deadline, group: dist.ProcessGroup | None
    ) -> _C.RemoteOpened:
        owner, of_group = self._owners[place], backend(group)
        if owner.address == of_group._address_of(of_group.rank()):
            raise ValueError(
                f"this process publishes a part of {self.name!r} itself; subscribe in another"
            )
        with _naming(owner):
            opened = open_raw(self.name, owner, deadline.left(), group)
        bytes = max(self._table.layout_of(place).bytes, 1)
        if not opened.has_versions or opened.nbytes != bytes:
            raise PeerError(f"{owner.who} publishes {self.name!r} with a table of something else")
        return opened

    def _check(self, state: State) -> None:
        """That of a module."""
        tensors = self._table.tensors
        if set(state) != set(tensors):
            different = sorted(set(state) ^ set(tensors))
            raise ValueError(f"the module has other names than were published: {different[:5]}")
        for key, tensor in state.items():
            shape = tensors[key].kind.shape
            if tuple(tensor.shape) != shape:
                raise ValueError(
                    f"{key!r} has shape {tuple(tensor.shape)} in the module; {shape} was published"
                )


def subscribe(
    name: str,
    on: int | None = None,
    at: str | None = None,
    timeout: float = DEFAULT_TIMEOUT_S,
    group: dist.ProcessGroup | None = None,
) -> Subscription:
    """What another process publishes under this name; waits until it does. As remote.open().

    Of a state that several ranks publish, any of them; it knows the others.

    A reader puts a version together from all of these. It keeps what it has of one while it waits
    for the others, so they may be any number of versions apart, and need no barrier between their
    updates: it waits until the last has come to the newest version of the first. But a version has
    to stay the newest of a rank for as long as its part takes to be found, 1 ms, and read. Where
    updates come faster than that, each look may find another version, and a read may last until its
    timeout. Ranks that train together take a step as one, so that is a matter of the time between
    two updates alone.
    """
    check_name(name)
    check_timeout(timeout)
    deadline = Deadline(timeout)
    whose = "" if at is None else " of the owner's job"
    contact = owner_of(on, at, group)
    return Subscription(name, contact, lambda rank: f"rank {rank}{whose}", deadline, group)


@contextmanager
def _naming(owner: Owner) -> Iterator[None]:
    """An error that names a process alone names what it is to the reader, too."""
    try:
        yield
    except PeerError as error:
        if owner.who in str(error):
            raise
        raise type(error)(f"{owner.who}: {error}") from error


def _read_table(
    name: str, owner: Owner, deadline: Deadline, group: dist.ProcessGroup | None
) -> Table:
    described = open_raw(table_name(name), owner, deadline.left(), group)
    kind = decode(described.meta, described.nbytes, owner.who)
    text = RemoteTensor(described, kind, 0, name).read(timeout=deadline.left())
    return Table.decode(bytes(text.numpy()), owner.who)
