"""Both ends of what goes from process to process in each iteration, whoever says what that is.

The tensors of known kinds go by slots.py. Whatever stops half way is not gone on with, as the two
sides might not mean the same iteration any more. One thread at a time.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from .checks import check_tensor, check_timeout
from .kind import Kind, kind_of
from .opening import DEFAULT_TIMEOUT_S
from .slots import Layout, SlotReceiver, SlotSender, Tensors


class _End:
    """What sender and receiver have in common."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._why_not = ""  # why it cannot go on

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """For what must be done whole or be the last."""
        self._why_not = "an iteration has stopped half way before"
        yield
        self._why_not = ""

    def _check(self, timeout: float) -> None:
        check_timeout(timeout)
        if self._why_not:
            raise RuntimeError(
                f"{self.name!r} cannot go on, as {self._why_not}; close both sides, and make them "
                "anew"
            )


class Sender(_End):
    """Sends tensors in iterations."""

    def __init__(self, name: str, group: dist.ProcessGroup | None) -> None:
        super().__init__(name)
        self._slots = SlotSender(name, group)

    @property
    def stats(self) -> dict[str, int]:
        """Counted so far. Any thread.

        iterations   sent
        writes       to memory of the receiver: one an iteration where all tensors are in place()
        copies       of tensors that were not contiguous, before they were written
        """
        slots = self._slots
        return {"iterations": slots.iteration, "writes": slots.writes, "copies": slots.copies}

    def close(self, timeout: float = 10.0) -> None:
        """Sends no more, and gives the name back: receive() raises RevokedError there, after what
        was sent. timeout: in seconds. Raises TimeoutError."""
        check_timeout(timeout)
        self._why_not = "it is closed"
        self._slots.close(timeout)

    def _send(self, placed: Tensors, timeout: float) -> None:
        end = time.monotonic() + timeout
        self._slots.wait_for_slot(end)
        with self._whole():
            self._slots.write(placed, end)


class Receiver(_End):
    """Receives them."""

    def __init__(
        self,
        name: str,
        layout: Layout,
        of: int | None,
        at: str | None,
        timeout: float,
        group: dist.ProcessGroup | None,
    ) -> None:
        super().__init__(name)
        self._slots = SlotReceiver(name, layout, of, at, timeout, group)

    @property
    def stats(self) -> dict[str, int]:
        """Counted so far. Any thread.

        iterations   received
        """
        return {"iterations": self._slots.iteration}

    def receive(self, timeout: float = DEFAULT_TIMEOUT_S) -> dict[str, torch.Tensor]:
        """The next iteration's values by name, where they were placed: in views, not in copies.

        They hold until the next receive(), which gives their memory back to the sender; clone()
        what is needed for longer. The sender is up to two iterations ahead. timeout: in seconds.
        Raises TimeoutError if nothing came in time, and can be called again; PeerError,
        RevokedError.
        """
        self._check(timeout)
        views, _ = self._slots.receive(time.monotonic() + timeout)
        return views

    def close(self, timeout: float = 10.0) -> None:
        """Receives no more, and gives the name back: send() raises RevokedError there.

        timeout: in seconds. Raises TimeoutError.
        """
        check_timeout(timeout)
        self._why_not = "it is closed"
        self._slots.close(timeout)


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
