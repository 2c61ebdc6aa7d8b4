"""A model's state in versions: one process publishes, others read whole ones when they like.

The state lies there twice, so a reader reads one version while the next is being written, and the
writer waits for nobody (csrc/remote/statement.h).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import torch
import torch.distributed as dist

from .checks import check_name, check_tensor, check_timeout
from .errors import PeerError
from .kind import Kind, decode, kind_of
from .opening import DEFAULT_TIMEOUT_S, Owner, RemoteTensor, RemoteWork, open_raw, owner_of
from .process import face

ALIGNMENT = 64  # of each tensor among the others
LOOK_AGAIN_S = 0.001

State = Mapping[str, torch.Tensor]


class Table:
    """Where the tensors of a state lie in the bytes of a version."""

    def __init__(self, kinds: dict[str, Kind]) -> None:
        self.kinds = kinds
        self.offsets: dict[str, int] = {}
        self.bytes = 0
        for name, kind in kinds.items():
            self.offsets[name] = self.bytes
            self.bytes += -(-kind.bytes // ALIGNMENT) * ALIGNMENT

    def view(self, memory: torch.Tensor, name: str) -> torch.Tensor:
        kind, offset = self.kinds[name], self.offsets[name]
        return memory[offset : offset + kind.bytes].view(kind.dtype).view(kind.shape)

    def encode(self) -> bytes:
        return json.dumps([[name, kind.encode()] for name, kind in self.kinds.items()]).encode()

    @staticmethod
    def decode(text: bytes, who: str) -> Table:
        """PeerError for what encode() has not made. It comes from another process."""
        try:
            pairs = [(str(name), str(kind)) for name, kind in json.loads(text)]
        except (ValueError, TypeError, RecursionError):
            raise PeerError(f"{who} publishes a table that makes no sense") from None
        return Table({name: decode(kind.encode(), None, who) for name, kind in pairs})


class Publication:
    """A state that this process publishes. As publish() makes it."""

    def __init__(
        self, name: str, state: State, dtype: torch.dtype | None, group: dist.ProcessGroup | None
    ) -> None:
        self.name = name
        self._state = dict(state)
        self._table = Table(
            {key: Kind(dtype or t.dtype, tuple(t.shape)) for key, t in self._state.items()}
        )
        self._face = face(group)
        text = self._table.encode()
        self._described = self._face.allocate(len(text), False)
        self._described.copy_(torch.frombuffer(bytearray(text), dtype=torch.uint8))
        self._versions = self._face.publish(name, max(self._table.bytes, 1), "")
        try:
            meta = kind_of(self._described).encode()
            self._face.expose(_table_name(name), self._described, False, meta)
        except ValueError:
            self._face.revoke(name, DEFAULT_TIMEOUT_S)
            raise

    @property
    def version(self) -> int:
        """The newest; 0: update() was not called yet."""
        return self._versions.version

    def update(self, state: State | None = None) -> int:
        """Publishes what the tensors hold now, as the next version; returns its number.

        state: other tensors of the same names and shapes; None: those that publish() was given.
        Who reads gets this version whole, or the one before it. One thread at a time.
        Raises ValueError for a state of another form, before anything is published.
        """
        state = self._state if state is None else state
        self._check(state)
        memory = self._versions.begin()
        with torch.no_grad():
            for key in self._table.kinds:
                self._table.view(memory, key).copy_(state[key])
        return self._versions.complete()

    def close(self, timeout: float = 10.0) -> None:
        """Publishes no more: who subscribes gets RevokedError. timeout: in seconds, for readers."""
        check_timeout(timeout)
        self._face.revoke(_table_name(self.name), timeout)
        self._face.revoke(self.name, timeout)

    def _check(self, state: State) -> None:
        if set(state) != set(self._table.kinds):
            different = sorted(set(state) ^ set(self._table.kinds))
            raise ValueError(f"state has other names than were published: {different[:5]}")
        for key, kind in self._table.kinds.items():
            if tuple(state[key].shape) != kind.shape:
                shape = tuple(state[key].shape)
                raise ValueError(f"state[{key!r}] has shape {shape}; {kind.shape} was published")


class Subscription:
    """Another process's publication, as this one reads it. As subscribe() makes it."""

    def __init__(
        self, name: str, owner: Owner, timeout: float, group: dist.ProcessGroup | None
    ) -> None:
        self.name = name
        self._who = owner.who
        end = time.monotonic() + timeout
        described = open_raw(_table_name(name), owner, timeout, group)
        kind = decode(described.meta, described.nbytes, self._who)
        left = max(end - time.monotonic(), 0.0)
        text = RemoteTensor(described, kind, 0, name).read(timeout=left)
        self._table = Table.decode(bytes(text.numpy()), self._who)
        self._opened = open_raw(name, owner, max(end - time.monotonic(), 0.0), group)
        if not self._opened.has_versions or self._opened.nbytes != max(self._table.bytes, 1):
            raise PeerError(f"{self._who} publishes {name!r} with a table of something else")
        self._face = face(group)
        self._memory = self._new_memory()
        self.version = 0  # that the last read() has read

    def read(
        self, newer: bool = False, timeout: float = DEFAULT_TIMEOUT_S
    ) -> dict[str, torch.Tensor]:
        """The newest version, whole, as views of memory that the next read() writes anew.

        newer: waits for a version newer than the last that was read. `version` says which it is.
        timeout: in seconds. One thread at a time. Raises TimeoutError if there is none in time,
        RevokedError, PeerError.
        """
        check_timeout(timeout)
        end = time.monotonic() + timeout
        while True:
            least = self.version if newer else 0
            left = max(end - time.monotonic(), 0.0)
            work = self._opened.snapshot(self._memory, least, left)
            try:
                RemoteWork(work).wait()
            finally:
                if not work.done():  # it goes on, and keeps what it reads into
                    self._memory = self._new_memory()
            if work.version() > 0:
                self.version = work.version()
                return {key: self._table.view(self._memory, key) for key in self._table.kinds}
            if time.monotonic() >= end:
                raise TimeoutError(
                    f"{self._who} has published no version of {self.name!r} newer than {least} "
                    f"within {timeout} s"
                )
            time.sleep(LOOK_AGAIN_S)

    def _new_memory(self) -> torch.Tensor:
        """That the device knows."""
        return self._face.allocate(self._opened.nbytes, False)

    def load_into(
        self, module: torch.nn.Module, newer: bool = False, timeout: float = DEFAULT_TIMEOUT_S
    ) -> int:
        """Copies the newest version into the module's state; returns its number. As read()."""
        module.load_state_dict(self.read(newer, timeout))
        return self.version


def publish(
    state: State,
    name: str,
    dtype: torch.dtype | None = None,
    group: dist.ProcessGroup | None = None,
) -> Publication:
    """Lets all of the job read this state in versions; the first comes with update().

    state: tensors by name, as state_dict() gives them; they stay where they are, and update() reads
    them. dtype: of what is published; None: each tensor's own. It takes twice the state's bytes of
    memory. group: by which others are reached; None is the default group.
    Raises ValueError for a name that is taken, and for tensors that are not dense on the CPU.
    """
    check_name(name)
    for key, tensor in state.items():
        check_tensor(f"state[{key!r}]", tensor)
    return Publication(name, state, dtype, group)


def subscribe(
    name: str,
    on: int | None = None,
    at: str | None = None,
    timeout: float = DEFAULT_TIMEOUT_S,
    group: dist.ProcessGroup | None = None,
) -> Subscription:
    """What another process publishes under this name; waits until it does. As remote.open()."""
    check_name(name)
    check_timeout(timeout)
    return Subscription(name, owner_of(on, at, group), timeout, group)


def _table_name(name: str) -> str:
    return name + ":table"
