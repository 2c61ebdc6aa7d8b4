"""trace(): what goes from process to process is learnt in the first iteration, and placed then.

The first iteration goes by mailbox, with a table of what it is. From that both sides make the same
place for it (Xue et al., RPC Considered Harmful, 2018, section 3: dynamic tracing).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from ..memory.checks import check_name, check_timeout
from ..memory.kind import Kind, decode_kinds, encode_kinds, kind_of
from ..memory.opening import DEFAULT_TIMEOUT_S
from .graph import some
from .slots import SlotLayout
from .transfers import Receiver, Sender, check_names, check_value


class Trace:
    """Makes the two ends of a transfer that is learnt. As trace() makes it."""

    def __init__(self, module: torch.nn.Module | None, cut: Sequence[str]) -> None:
        self._module = module
        self._cut = cut

    def sender(
        self,
        name: str,
        to: int | None = None,
        at: str | None = None,
        group: dist.ProcessGroup | None = None,
    ) -> TracedSender:
        """The end of the process that sends; waits for nobody before send().

        name: of this transfer, alike on both sides. to, at: the other process, as on= and at= of
        remote.open(). group: by which it is reached. Raises ValueError for a name that is taken.
        """
        check_name(name)
        return TracedSender(name, self._module, self._cut, to, at, group)

    def receiver(
        self,
        name: str,
        of: int | None = None,
        at: str | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
        group: dist.ProcessGroup | None = None,
    ) -> TracedReceiver:
        """The end of the process that receives; waits for sender() there.

        As sender(), of: the other process. timeout: in seconds. Raises TimeoutError and PeerError,
        too.
        """
        check_name(name)
        check_timeout(timeout)
        return TracedReceiver(name, of, at, timeout, group)


class Outputs:
    """What submodules have returned since the last iteration."""

    def __init__(self, module: torch.nn.Module, cut: Sequence[str]) -> None:
        self._returned: dict[str, Any] = {}
        self._again: list[str] = []
        self._hooks = [
            module.get_submodule(name).register_forward_hook(
                lambda _, __, output, name=name: self._note(name, output)
            )
            for name in cut
        ]

    def _note(self, name: str, output: Any) -> None:
        if name in self._returned:
            self._again.append(name)
        self._returned[name] = output

    def values(self) -> dict[str, Any]:
        """By the names of the submodules; parts of a tuple, list or dict by name.part."""
        if self._again:
            again, self._again = self._again, []
            self._returned = {}
            raise ValueError(f"{again} ran more than once since send(); call send() after each run")
        return dict(
            pair for name, output in self._returned.items() for pair in _parts(name, output)
        )

    def clear(self) -> None:
        self._returned = {}

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()


def _parts(name: str, output: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(output, Mapping):
        pairs = [(str(key), part) for key, part in output.items()]
    elif isinstance(output, tuple | list):
        pairs = [(str(index), part) for index, part in enumerate(output)]
    else:
        yield name, output
        return
    for key, part in pairs:
        yield from _parts(f"{name}.{key}", part)


class TracedSender(Sender):
    """Sends what it is given, or what submodules return. As Trace.sender() makes it."""

    def __init__(
        self,
        name: str,
        module: torch.nn.Module | None,
        cut: Sequence[str],
        to: int | None,
        at: str | None,
        group: dist.ProcessGroup | None,
    ) -> None:
        super().__init__(name, to, at, group)
        self._outputs = None if module is None else Outputs(module, cut)
        self._where = (to, at)
        self._kinds: dict[str, Kind] = {}
        self._opened_for: dict[str, Kind] | None = None

    def send(
        self, values: Mapping[str, Any] | None = None, timeout: float = DEFAULT_TIMEOUT_S
    ) -> None:
        """Sends an iteration of tensors; they may be changed after it.

        values: by name, the same names in each iteration; None: what the submodules of the cut have
        returned since the last. The first iteration goes by mailbox; then all have places, and go
        by mailbox only while they have another shape or dtype: `stats` counts that.
        It waits while the receiver has two iterations that it has not given back. timeout: in
        seconds. Raises ValueError for other names and for what is no dense tensor on the CPU,
        before anything moves; TimeoutError, after which it can be called again if it was for want
        of a slot; PeerError, RevokedError.
        """
        self._check(timeout)
        end = time.monotonic() + timeout
        values = self._values(values)
        self._open(end)
        kinds = {key: kind_of(value) for key, value in values.items()}
        placed = {key: values[key] for key in kinds if kinds[key] == self._kinds.get(key)}
        mailed = [values[key] for key in kinds if key not in placed]
        if self._kinds:
            self._send(placed, mailed, end)
        else:
            text = torch.frombuffer(bytearray(encode_kinds(kinds)), dtype=torch.uint8)
            self._send({}, [text, *mailed], end)
            self._kinds = kinds
        self._mailed += len(mailed)
        if self._outputs is not None:
            self._outputs.clear()

    def close(self, timeout: float = 10.0) -> None:
        if self._outputs is not None:
            self._outputs.close()
        super().close(timeout)

    def _values(self, given: Mapping[str, Any] | None) -> dict[str, torch.Tensor]:
        """In the order of the first iteration."""
        if given is None:
            if self._outputs is None:
                raise ValueError("values=None, and trace() was given no module; give the tensors")
            given = self._outputs.values()
        if not given:
            raise ValueError("values has nothing in it; give a tensor by its name")
        for name, value in given.items():
            check_value(name, value)
        if not self._kinds:
            return dict(given)
        check_names(given, self._kinds)
        if others := sorted(set(given) - set(self._kinds)):
            raise ValueError(f"values has {others[:5]}, which the first iteration had not")
        return {name: given[name] for name in self._kinds}

    def _open(self, end: float) -> None:
        if self._opened_for != self._kinds:
            self._slots.open(SlotLayout(self._kinds), *self._where, end)
            self._opened_for = self._kinds


class TracedReceiver(Receiver):
    """Receives what the other sends. As Trace.receiver() makes it."""

    def __init__(
        self,
        name: str,
        of: int | None,
        at: str | None,
        timeout: float,
        group: dist.ProcessGroup | None,
    ) -> None:
        super().__init__(name, SlotLayout({}), of, at, timeout, group)
        self._kinds: dict[str, Kind] = {}

    def receive(self, timeout: float = DEFAULT_TIMEOUT_S) -> dict[str, torch.Tensor]:
        """The next iteration's tensors by name: where they were placed, in views, not in copies.

        Views hold until the next receive(), which gives their memory back to the sender; clone()
        what is needed for longer. The sender is up to two iterations ahead. timeout: in seconds.
        Raises TimeoutError if nothing came in time, and can be called again; PeerError,
        RevokedError.
        """
        self._check(timeout)
        end = time.monotonic() + timeout
        values, flagged = self._slots.receive(end)
        with self._whole():
            if not self._kinds:
                text = self._take(end)
                who = f"the sender of {self.name!r}"
                self._kinds = decode_kinds(bytes(text.numpy()), who)
                flagged = [*self._kinds]
                self._slots.place(SlotLayout(self._kinds))
            values |= {name: self._take(end) for name in flagged}
        self._mailed += len(flagged)
        return {name: values[name] for name in self._kinds}


def trace(module: torch.nn.Module | None = None, cut: str | Sequence[str] = ()) -> Trace:
    """For transfers of which no graph tells the shapes: they are learnt in the first iteration.

    module: whose submodules' outputs send() sends by itself; None: send() is given the tensors. The
    receiver needs none. cut: the names of these submodules. Any thread; needs no process group.
    Raises ValueError for a name that is not in the module, and for one of the two without the
    other.
    """
    names = [cut] if isinstance(cut, str) else [*cut]
    if (module is None) != (not names):
        raise ValueError(f"module is a {type(module).__name__} and cut={names}; give both, or none")
    if module is not None:
        known = [name for name, _ in module.named_modules() if name]
        for name in names:
            if name not in known:
                raise ValueError(f"cut={name!r} is no submodule; there are: {some(known)}")
    return Trace(module, names)
