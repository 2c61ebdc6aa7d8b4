"""Both ends of what goes from process to process in each iteration, whoever says what that is.

Tensors of known kinds go by slots.py, all else by mailbox. Letters are posted before the iteration
is notified of, so who has seen that finds them there. An iteration that stops half way is the last:
the two sides might not mean the same one any more. One thread at a time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from ..memory.checks import check_tensor, check_timeout
from ..memory.errors import PeerError
from ..memory.kind import Kind, kind_of
from ..memory.mailboxes import mailbox, open_mailbox
from ..memory.process import face
from ..memory.works import RemoteWork
from .slots import SlotLayout, SlotReceiver, SlotSender, Tensors, left

LOOK_S = 1.0  # so often who waits for a letter looks whether its sender is still there


class _End:
    """What sender and receiver have in common."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._why_not = ""  # why it cannot go on

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """For what must be done whole or be the last."""
        why_not, self._why_not = self._why_not, "an iteration has stopped half way before"
        try:
            yield
        except PeerError:  # so will all that comes after it
            self._why_not = why_not
            raise
        self._why_not = why_not

    def _check(self, timeout: float) -> None:
        check_timeout(timeout)
        if self._why_not:
            raise RuntimeError(
                f"{self.name!r} cannot go on, as {self._why_not}; close both sides, and make them "
                "anew"
            )


class Sender(_End):
    """Sends tensors in iterations."""

    def __init__(
        self, name: str, to: int | None, at: str | None, group: dist.ProcessGroup | None
    ) -> None:
        super().__init__(name)
        self._outbox = open_mailbox(_mail_name(name), to, at, group)
        self._slots = SlotSender(name, group)
        self._group = group
        self._posted: list[RemoteWork[None]] = []  # and not yet taken
        self._mailed = 0

    @property
    def stats(self) -> dict[str, int]:
        """Counted so far. Any thread.

        iterations   sent
        writes       to memory of the receiver: one an iteration where all tensors are in place()
        mailed       values that went by mailbox
        copies       of tensors that were not contiguous, before they were written
        """
        slots = self._slots
        return {
            "iterations": slots.iteration,
            "writes": slots.writes,
            "mailed": self._mailed,
            "copies": slots.copies,
        }

    def place(self, name: str) -> torch.Tensor:
        """A tensor of this value's shape and dtype, from which send() needs no copy and, if all
        are in such places, one write. It is the same in each iteration, and free after send().

        Raises ValueError for a value that has no place at the receiver, or none yet.
        """
        if name not in self._slots.names:
            raise ValueError(f"name={name!r} has no place there; these have: {self._slots.names}")
        return self._slots.place(name)

    def close(self, timeout: float = 10.0) -> None:
        """Waits until what went by mailbox is taken, and sends no more. The name is free again;
        receive() raises RevokedError there, after what was sent.

        timeout: in seconds. Raises TimeoutError if the receiver has not taken it by then.
        """
        check_timeout(timeout)
        end = time.monotonic() + timeout
        self._why_not = "it is closed"
        try:
            for work in self._posted:
                with contextlib.suppress(PeerError):  # nobody is there to take it
                    work.wait(left(end))
        finally:
            self._posted = []
            self._slots.close(left(end))

    def _send(self, placed: Tensors, mailed: Sequence[torch.Tensor], end: float) -> None:
        self._slots.wait_for_slot(end)
        with self._whole():
            self._posted = [work for work in self._posted if not work.done()]
            for tensor in mailed:
                self._posted.append(self._outbox.put_async(self._letter(tensor), left(end)))
            self._slots.write(placed, end)

    def _letter(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy of one that others can read where it lies: the mailbox makes none of it, and a
        slot of another receiver changes once it is given back."""
        dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
        return dense.clone() if face(self._group).holds(dense) else dense


class Receiver(_End):
    """Receives them."""

    def __init__(
        self,
        name: str,
        layout: SlotLayout,
        of: int | None,
        at: str | None,
        timeout: float,
        group: dist.ProcessGroup | None,
    ) -> None:
        """Makes place, and waits for the sender."""
        super().__init__(name)
        self._mailbox = mailbox(_mail_name(name), group)
        self._slots = SlotReceiver(name, group)
        self._mailed = 0
        try:
            self._slots.place(layout)
            self._slots.open(of, at, time.monotonic() + timeout)
        except BaseException:
            self.close(timeout)
            raise

    @property
    def stats(self) -> dict[str, int]:
        """Counted so far. Any thread.

        iterations   received
        mailed       values that came by mailbox
        """
        return {"iterations": self._slots.iteration, "mailed": self._mailed}

    def close(self, timeout: float = 10.0) -> None:
        """Receives no more. The name is free again; send() raises RevokedError there.

        timeout: in seconds, for a sender that is writing; then it is cut off.
        """
        check_timeout(timeout)
        self._why_not = "it is closed"
        self._mailbox.close()
        self._slots.close(timeout)

    def _take(self, end: float) -> torch.Tensor:
        """The next letter. It was posted before what has been notified of, and so is here, unless
        its sender has ended."""
        while True:
            try:
                return self._mailbox.get(min(left(end), LOOK_S))
            except TimeoutError:
                self._slots.look()
                if left(end) == 0:
                    raise


def check_names(values: Mapping[str, Any], names: Collection[str]) -> None:
    """ValueError where not all of these have a value."""
    if missing := sorted(set(names) - set(values)):
        raise ValueError(
            f"values has {sorted(values)[:5]}, and lacks {missing[:5]}; give a value for each of "
            f"{sorted(names)}"
        )


def check_value(name: str, value: Any) -> None:
    """A dense tensor on the CPU, contiguous or not."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or not value.is_cpu:
        check_tensor(f"values[{name!r}]", value)


def check_kind(name: str, value: torch.Tensor, kind: Kind) -> None:
    if kind_of(value) != kind:
        raise ValueError(
            f"values[{name!r}] has shape {tuple(value.shape)} and dtype {value.dtype}; place was "
            f"made for {kind.shape} and {kind.dtype}"
        )


def _mail_name(name: str) -> str:
    return name + ":mail"
