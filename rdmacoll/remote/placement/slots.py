"""Tensors of known kinds, placed at their receiver: each transfer is a put and a signal there.

The receiver's memory has two slots, which iterations use in turn; every tensor has its place in
each. The sender writes them there, and notifies of the last. The receiver gives a slot back by a
notification of its own, the credit. Once both are made, nobody asks anybody for anything
(Xue et al., RPC Considered Harmful, 2018, section 3: static placement). One thread at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Mapping, Sequence

import torch
import torch.distributed as dist

from ..memory.errors import PeerError
from ..memory.exposing import Exposure, empty, expose
from ..memory.kind import Kind, encode_kinds
from ..memory.layout import Layout, padded
from ..memory.opening import RemoteTensor, open

SLOTS = 2
DIGEST_BYTES = 32
HEAD_BYTES = 64  # the digest of the table, which both sides must have alike
LOOK_S = 0.05  # so often who waits looks whether the other is still there

Tensors = Mapping[str, torch.Tensor]


class SlotLayout:
    """The receiver's memory: a head, then the slots. A slot: a flag for each tensor, then these.

    A tensor with a flag is not in its place this time. others: what never is, which both sides
    must know alike, too.
    """

    def __init__(self, kinds: dict[str, Kind], others: Sequence[str] = ()) -> None:
        self.tensors = Layout(kinds)
        self.flags_bytes = padded(len(kinds))
        self.bytes = HEAD_BYTES + SLOTS * (self.flags_bytes + self.tensors.bytes)
        digest = hashlib.sha256(encode_kinds(kinds) + repr([*others]).encode()).digest()
        self.digest = torch.frombuffer(bytearray(digest), dtype=torch.uint8)
        self._writes = max(len(kinds), 1)  # of an iteration, at most

    def flags_at(self, iteration: int) -> int:
        slot_bytes = self.flags_bytes + self.tensors.bytes
        return HEAD_BYTES + iteration % SLOTS * slot_bytes

    def tensors_at(self, iteration: int) -> int:
        return self.flags_at(iteration) + self.flags_bytes

    def number(self, iteration: int) -> int:
        """By which is notified of the last write of an iteration; those before have the ones
        below it."""
        return iteration * self._writes

    def iteration(self, number: int) -> int:
        """The newest that is complete."""
        return number // self._writes


class SlotSender:
    """Writes tensors to their receiver's slots."""

    def __init__(self, name: str, group: dist.ProcessGroup | None) -> None:
        """Exposes the credit; waits for nobody."""
        self.iteration = 0
        self.writes = 0
        self.copies = 0
        self._name = name
        self._group = group
        memory = empty(1, dtype=torch.uint8, access="rw", group=group)
        self._credit = expose(memory, _credit_name(name), "rw", group=group)
        self._layout = SlotLayout({})
        self._own: torch.Tensor | None = None

    @property
    def names(self) -> list[str]:
        """Of the tensors that have places."""
        return [*self._layout.tensors.kinds]

    def open(self, layout: SlotLayout, to: int | None, at: str | None, end: float) -> None:
        """Opens the receiver's memory for the iterations that come; waits until it is there.

        As remote.open(). end: by time.monotonic(). Raises ValueError where the receiver has made
        place for other tensors.
        """
        name = _slots_name(self._name, self.iteration)
        there = open(name, to, at, left(end), self._group)
        self._freed(0, there, end, f"the receiver of {self._name!r} is not there in time")
        alike = there.shape[0] == layout.bytes
        if alike:
            digest = there[:DIGEST_BYTES].read(timeout=left(end))
            alike = torch.equal(digest, layout.digest)
        if not alike:
            raise ValueError(
                f"name={self._name!r}: its receiver has made place for other tensors; make both "
                "sides with the same program, cut and stages"
            )
        self._layout, self._there = layout, there

    def place(self, name: str) -> torch.Tensor:
        """Memory of this process for the tensor: what is written from there needs no copy."""
        if self._own is None:
            bytes = self._layout.tensors.bytes
            self._own = empty(bytes, dtype=torch.uint8, group=self._group)
        return self._layout.tensors.view(self._own, name)

    def wait_for_slot(self, end: float) -> None:
        """Until the next iteration's is free. end: by time.monotonic().

        Raises TimeoutError, and can be called again; PeerError, RevokedError.
        """
        least = max(self.iteration + 1 - SLOTS, 0)
        what = f"iteration {least} of {self._name!r} was not given back by its receiver in time"
        freed = self._freed(least, self._there, end, what)
        if freed > self.iteration:
            raise PeerError(
                f"the receiver of {self._name!r} has given iteration {freed} back; only "
                f"{self.iteration} were sent"
            )

    def _freed(self, least: int, there: RemoteTensor, end: float, what: str) -> int:
        """The newest iteration that was given back, once it is `least`; 0: the receiver is there,
        and has given none back."""
        return _wait_for(self._credit, least + 1, there, end, what) - 1

    def write(self, tensors: Tensors, end: float) -> None:
        """Writes the next iteration. Those of the layout that are not given get flags.

        They have the layout's kinds, and the slot is free. When this returns, they may be changed.
        """
        self.iteration += 1
        parts = self._parts(tensors)
        first = self._layout.number(self.iteration) - len(parts) + 1
        works = []
        for number, (offset, data) in enumerate(parts, first):
            part = self._there[offset : offset + data.nbytes]
            works.append(part.write_async(data, number, left(end)))
        for work in works:
            work.wait(left(end))
        self.writes += len(parts)

    def close(self, timeout: float) -> None:
        self._credit.revoke(timeout)

    def _parts(self, tensors: Tensors) -> list[tuple[int, torch.Tensor]]:
        """What is to be written, as bytes, and to where. It is one, if all are in their places."""
        table = self._layout.tensors
        at = self._layout.tensors_at(self.iteration)
        missing = [name not in tensors for name in table.kinds]
        if not any(missing) and all(self._is_in_place(name, tensors[name]) for name in tensors):
            return [(at, torch.empty(0, dtype=torch.uint8) if self._own is None else self._own)]
        parts = [
            (at + table.offsets[name], _bytes_of(self._contiguous(name, tensor)))
            for name, tensor in tensors.items()
        ]
        if any(missing):
            flags = torch.tensor(missing).view(torch.uint8)
            parts.append((self._layout.flags_at(self.iteration), flags))
        return parts

    def _is_in_place(self, name: str, tensor: torch.Tensor) -> bool:
        if self._own is None or not _is_plain(tensor):
            return False
        return tensor.data_ptr() == self.place(name).data_ptr()

    def _contiguous(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        if _is_plain(tensor):
            return tensor
        self.copies += 1
        return self.place(name).copy_(tensor.detach())


class SlotReceiver:
    """Reads what is written to the slots here."""

    def __init__(self, name: str, group: dist.ProcessGroup | None) -> None:
        self.iteration = 0
        self._name = name
        self._group = group
        self._freed = 0
        self._exposures: list[Exposure] = []

    def place(self, layout: SlotLayout) -> None:
        """Makes and exposes the slots for the iterations that come."""
        self._layout = layout
        self._memory = empty(layout.bytes, dtype=torch.uint8, access="rw", group=self._group)
        self._memory[:DIGEST_BYTES] = layout.digest
        name = _slots_name(self._name, self.iteration)
        self._exposures.append(expose(self._memory, name, "rw", group=self._group))

    def open(self, of: int | None, at: str | None, end: float) -> None:
        """Opens the sender's credit, and says so; waits until it is there. As remote.open()."""
        self._credit = open(_credit_name(self._name), of, at, left(end), self._group)
        self._give_back(end)

    def receive(self, end: float) -> tuple[dict[str, torch.Tensor], list[str]]:
        """Waits for the next iteration. Its tensors, as views, and the names that have flags.

        The slot of the iteration before is given back: views of that are written anew from now on.
        end: by time.monotonic(). Raises TimeoutError, and can be called again; PeerError,
        RevokedError.
        """
        if self._freed < self.iteration:
            self._give_back(end)
        next = self.iteration + 1
        what = f"iteration {next} of {self._name!r} has not come in time"
        number = _wait_for(self._exposures[-1], self._layout.number(next), self._credit, end, what)
        newest = self._layout.iteration(number)
        if newest > self.iteration + SLOTS:
            raise PeerError(
                f"the sender of {self._name!r} is at iteration {newest}, and has written over "
                f"{next}, which it had no slot for"
            )
        self.iteration = next
        table = self._layout.tensors
        flags_at, at = self._layout.flags_at(next), self._layout.tensors_at(next)
        flags = self._memory[flags_at : flags_at + len(table.kinds)]
        flagged = [name for name, flag in zip(table.kinds, flags.tolist(), strict=True) if flag]
        flags.zero_()
        slot = self._memory[at : at + table.bytes]
        placed = {name: table.view(slot, name) for name in table.kinds if name not in flagged}
        return placed, flagged

    def _give_back(self, end: float) -> None:
        """All that was received so far."""
        self._freed = self.iteration
        self._credit[:0].write(_nothing(), self.iteration + 1, left(end))

    def look(self) -> None:
        """Raises PeerError if the sender has ended, and RevokedError if it has closed."""
        _look(self._credit)

    def close(self, timeout: float) -> None:
        while self._exposures:
            self._exposures.pop().revoke(timeout)


def left(end: float) -> float:
    """Seconds until then, by time.monotonic()."""
    return max(end - time.monotonic(), 0.0)


def _slots_name(name: str, after: int) -> str:
    return f"{name}:slots{after}"


def _credit_name(name: str) -> str:
    return name + ":credit"


def _nothing() -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().reshape(-1).view(torch.uint8)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether its memory is what it shows."""
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def _look(there: RemoteTensor) -> None:
    """Whether its owner still is there: a read of nothing sends nothing."""
    with contextlib.suppress(TimeoutError):
        there[:0].read(_nothing(), LOOK_S)


def _wait_for(exposure: Exposure, least: int, there: RemoteTensor, end: float, what: str) -> int:
    """Waits until the other has notified of `least`; returns the newest number.

    Who waits for a notification does not hear of its sender's end, and so looks now and then.
    """
    while (newest := exposure.notified) < least:
        with contextlib.suppress(TimeoutError):
            return exposure.wait_notify(least, min(left(end), LOOK_S))
        try:
            _look(there)
        except PeerError:
            if exposure.notified < least:  # it may have come just before the end
                raise
        if left(end) == 0:
            raise TimeoutError(what)
    return newest
