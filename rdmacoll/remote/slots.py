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
from collections.abc import Mapping

import torch
import torch.distributed as dist

from .errors import PeerError
from .exposing import Exposure, empty, expose
from .kind import Kind
from .opening import RemoteTensor, open
from .publishing import ALIGNMENT, Table

SLOTS = 2
DIGEST_BYTES = 32
HEAD_BYTES = 64  # the digest of the table, which both sides must have alike
LOOK_S = 0.05  # so often who waits looks whether the other is still there

Tensors = Mapping[str, torch.Tensor]


class Layout:
    """The receiver's memory: a head, then the slots. A slot: a flag for each tensor, then these.

    A tensor with a flag is not in its place this time; its sender says how else it comes.
    """

    def __init__(self, kinds: dict[str, Kind]) -> None:
        self.table = Table(kinds)
        self.flags_bytes = -(-len(kinds) // ALIGNMENT) * ALIGNMENT
        self.bytes = HEAD_BYTES + SLOTS * (self.flags_bytes + self.table.bytes)
        digest = hashlib.sha256(self.table.encode()).digest()
        self.digest = torch.frombuffer(bytearray(digest), dtype=torch.uint8)
        self._writes = max(len(kinds), 1)  # of an iteration, at most

    def flags_at(self, iteration: int) -> int:
        slot_bytes = self.flags_bytes + self.table.bytes
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
        self._own: torch.Tensor | None = None

    def open(self, layout: Layout, to: int | None, at: str | None, timeout: float) -> None:
        """Opens the receiver's memory; waits until it is there. As remote.open().

        Raises ValueError where the receiver has made place for other tensors.
        """
        end = time.monotonic() + timeout
        there = open(_slots_name(self._name), to, at, timeout, self._group)
        alike = there.shape[0] == layout.bytes
        if alike:
            digest = there[:DIGEST_BYTES].read(timeout=_left(end))
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
            bytes = self._layout.table.bytes
            self._own = empty(bytes, dtype=torch.uint8, group=self._group)
        return self._layout.table.view(self._own, name)

    def wait_for_slot(self, end: float) -> None:
        """Until the next iteration's is free. end: by time.monotonic().

        Raises TimeoutError, and can be called again; PeerError, RevokedError.
        """
        least = self.iteration + 1 - SLOTS
        what = f"iteration {least} of {self._name!r} was not given back by its receiver in time"
        freed = _wait_for(self._credit, least, self._there, end, what)
        if freed > self.iteration:
            raise PeerError(
                f"the receiver of {self._name!r} has given iteration {freed} back; only "
                f"{self.iteration} were sent"
            )

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
            works.append(part.write_async(data, number, _left(end)))
        for work in works:
            work.wait(_left(end))
        self.writes += len(parts)

    def close(self, timeout: float) -> None:
        self._credit.revoke(timeout)

    def _parts(self, tensors: Tensors) -> list[tuple[int, torch.Tensor]]:
        """What is to be written, as bytes, and to where. It is one, if all are in their places."""
        table = self._layout.table
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
        if self._own is None:
            return False
        return tensor.data_ptr() == self.place(name).data_ptr() and tensor.is_contiguous()

    def _contiguous(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
            return tensor
        self.copies += 1
        return self.place(name).copy_(tensor)


class SlotReceiver:
    """Reads what is written to the slots here."""

    def __init__(
        self,
        name: str,
        layout: Layout,
        of: int | None,
        at: str | None,
        timeout: float,
        group: dist.ProcessGroup | None,
    ) -> None:
        """Exposes the slots, then opens the sender's credit; waits until that is there."""
        self.iteration = 0
        self._name = name
        self._layout = layout
        self._freed = 0
        self._memory = empty(layout.bytes, dtype=torch.uint8, access="rw", group=group)
        self._memory[:DIGEST_BYTES] = layout.digest
        self._exposure = expose(self._memory, _slots_name(name), "rw", group=group)
        try:
            self._credit = open(_credit_name(name), of, at, timeout, group)
        except BaseException:
            self.close(timeout)
            raise

    def receive(self, end: float) -> tuple[dict[str, torch.Tensor], list[str]]:
        """Waits for the next iteration. Its tensors, as views, and the names that have flags.

        The slot of the iteration before is given back: views of that are written anew from now on.
        end: by time.monotonic(). Raises TimeoutError, and can be called again; PeerError,
        RevokedError.
        """
        if self._freed < self.iteration:
            self._credit[:0].write(_nothing(), self.iteration, _left(end))
            self._freed = self.iteration
        next = self.iteration + 1
        what = f"iteration {next} of {self._name!r} has not come in time"
        number = _wait_for(self._exposure, self._layout.number(next), self._credit, end, what)
        newest = self._layout.iteration(number)
        if newest > self.iteration + SLOTS:
            raise PeerError(
                f"the sender of {self._name!r} is at iteration {newest}, and has written over "
                f"{next}, which it had no slot for"
            )
        self.iteration = next
        table = self._layout.table
        flags_at, at = self._layout.flags_at(next), self._layout.tensors_at(next)
        flags = self._memory[flags_at : flags_at + len(table.kinds)]
        flagged = [name for name, flag in zip(table.kinds, flags.tolist(), strict=True) if flag]
        flags.zero_()
        slot = self._memory[at : at + table.bytes]
        return {
            name: table.view(slot, name) for name in table.kinds if name not in flagged
        }, flagged

    def close(self, timeout: float) -> None:
        self._exposure.revoke(timeout)


def _slots_name(name: str) -> str:
    return name + ":slots"


def _credit_name(name: str) -> str:
    return name + ":credit"


def _left(end: float) -> float:
    return max(end - time.monotonic(), 0.0)


def _nothing() -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().reshape(-1).view(torch.uint8)


def _wait_for(exposure: Exposure, least: int, there: RemoteTensor, end: float, what: str) -> int:
    """Waits until the other has notified of `least`. Who waits for a notification does not hear of
    its sender's end, so now and then this looks whether what is open there still is: a read of
    nothing sends nothing."""
    while (newest := exposure.notified) < least:
        with contextlib.suppress(TimeoutError):
            return exposure.wait_notify(least, min(_left(end), LOOK_S))
        try:
            with contextlib.suppress(TimeoutError):
                there[:0].read(_nothing(), LOOK_S)
        except PeerError:
            if exposure.notified < least:  # it may have come just before the end
                raise
        if _left(end) == 0:
            raise TimeoutError(what)
    return newest
