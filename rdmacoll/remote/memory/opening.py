"""The other side: what another process exposes, read and written from here."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from .checks import as_indices, check_name, check_tensor, check_timeout
from .kind import Kind, decode, kind_of
from .process import backend, face
from .words import check_word, from_word, to_word
from .works import RemoteWork, nothing

if TYPE_CHECKING:
    from ... import _C

DEFAULT_TIMEOUT_S = 60.0


class RemoteTensor:
    """A tensor of another process, or some rows of it. As remote.open() makes it.

    An index or a slice of the first dimension gives a part: `there[3]`, `there[10:20]` or
    `there[3][:8]`. It is closed when Python lets go of the last part of it.
    """

    def __init__(self, opened: _C.RemoteOpened, kind: Kind, offset: int, name: str) -> None:
        self._opened = opened
        self._kind = kind
        self._offset = offset
        self._name = name

    @property
    def shape(self) -> torch.Size:
        return torch.Size(self._kind.shape)

    @property
    def dtype(self) -> torch.dtype:
        return self._kind.dtype

    @property
    def access(self) -> str:
        """What its owner lets others do: "r" or "rw"."""
        return "rw" if self._opened.writable else "r"

    def __len__(self) -> int:
        if not self._kind.shape:
            raise TypeError("a tensor without dimensions has no length")
        return self._kind.shape[0]

    def __repr__(self) -> str:
        return f"RemoteTensor({self._name!r}, shape={tuple(self.shape)}, dtype={self.dtype})"

    def __getitem__(self, index: int | slice) -> RemoteTensor:
        shape, row_bytes = self._kind.shape, self._kind.row_bytes
        if not shape:
            raise IndexError("a tensor without dimensions has no rows")
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise ValueError(
                    f"step={index.step}; a part of a remote tensor is contiguous: take the rows "
                    "between first and last, or each by itself"
                )
            first, end, _ = index.indices(shape[0])
            rows = max(end - first, 0)
            kind = Kind(self.dtype, (rows, *shape[1:]))
            return RemoteTensor(self._opened, kind, self._offset + first * row_bytes, self._name)
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"index is a {type(index).__name__}; give an integer or a slice")
        row = index + shape[0] if index < 0 else index
        if not 0 <= row < shape[0]:
            raise IndexError(f"index={index} is not in a tensor of {shape[0]} rows")
        kind = Kind(self.dtype, shape[1:])
        return RemoteTensor(self._opened, kind, self._offset + row * row_bytes, self._name)

    def read(
        self, out: torch.Tensor | None = None, timeout: float = DEFAULT_TIMEOUT_S
    ) -> torch.Tensor:
        """What it is there now, in `out` (of its shape and dtype), or in a new tensor.

        While its owner or others write, parts of it may be of before and of after; publish() and
        subscribe() are for whole versions. timeout: in seconds. Any thread.
        Raises ValueError for another `out`, TimeoutError, RevokedError, PeerError.
        """
        return self.read_async(out, timeout).wait()

    def read_async(
        self, out: torch.Tensor | None = None, timeout: float = DEFAULT_TIMEOUT_S
    ) -> RemoteWork[torch.Tensor]:
        """The same as a work, whose wait() returns the tensor."""
        check_timeout(timeout)
        into = torch.empty(self.shape, dtype=self.dtype) if out is None else out
        self._check(into, "out", self._kind)
        return RemoteWork(self._opened.read(self._offset, into, timeout), lambda: into)

    def read_rows(
        self,
        rows: torch.Tensor | list[int],
        out: torch.Tensor | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
    ) -> torch.Tensor:
        """These rows, in their order, as torch's index_select(0, rows). All are read at once.

        rows: integers, each of which may come more than once. Raises TypeError for others, and
        IndexError for one that is no row of this tensor, before anything is read; else as read().
        """
        return self.read_rows_async(rows, out, timeout).wait()

    def read_rows_async(
        self,
        rows: torch.Tensor | list[int],
        out: torch.Tensor | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
    ) -> RemoteWork[torch.Tensor]:
        """The same as a work, whose wait() returns the rows."""
        check_timeout(timeout)
        wanted, kind = self._rows(rows)
        into = torch.empty(kind.shape, dtype=self.dtype) if out is None else out
        self._check(into, "out", kind)
        work = self._opened.read_rows(self._offset, self._kind.row_bytes, wanted, into, timeout)
        return RemoteWork(work, lambda: into)

    def write(
        self,
        data: torch.Tensor,
        notify: int | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        """Writes the tensor there. When this returns, `data` may be changed.

        notify: a number that the owner sees (Exposure.wait_notify) once it sees the data; larger
        than all before it from here. Without it fence() tells that the data are there.
        Raises ValueError for another shape or dtype, for a tensor that is for reading, and for a
        number that is not larger; TimeoutError, RevokedError, PeerError.
        """
        self.write_async(data, notify, timeout).wait()

    def write_async(
        self,
        data: torch.Tensor,
        notify: int | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
    ) -> RemoteWork[None]:
        """The same as a work; `data` must not be changed before it has ended."""
        check_timeout(timeout)
        self._check(data, "data", self._kind)
        _check_notify(notify)
        return RemoteWork(self._opened.write(self._offset, data, notify or 0, timeout), nothing)

    def write_rows(
        self,
        rows: torch.Tensor | list[int],
        values: torch.Tensor,
        notify: int | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        """Writes these rows: values[i] to row rows[i]. All are written at once.

        Of a row that comes more than once, the last of its values is there in the end. rows: as of
        read_rows(), with its errors. values: as read_rows() returns them. The others as of write(),
        with its errors: with notify= the owner sees the number once it sees all of the rows.
        """
        self.write_rows_async(rows, values, notify, timeout).wait()

    def write_rows_async(
        self,
        rows: torch.Tensor | list[int],
        values: torch.Tensor,
        notify: int | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
    ) -> RemoteWork[None]:
        """The same as a work; `values` must not be changed before it has ended."""
        check_timeout(timeout)
        there, kind = self._rows(rows)
        self._check(values, "values", kind)
        _check_notify(notify)
        work = self._opened.write_rows(
            self._offset, self._kind.row_bytes, there, values, notify or 0, timeout
        )
        return RemoteWork(work, nothing)

    def fetch_add(self, value: int, timeout: float = DEFAULT_TIMEOUT_S) -> int:
        """Adds to this element in one step, whoever else does, and returns what it was before.

        For one element of dtype int64 or uint64, as in there[3].fetch_add(1); it wraps like torch's
        own sums. Once it is shared only fetch_add and compare_swap may change it; all may read it.
        timeout: in seconds; where it has passed, the element may have changed. Any thread.
        Raises TypeError for another dtype, ValueError for several elements, for a value that does
        not fit, and for a tensor that is for reading; TimeoutError, RevokedError, PeerError.
        """
        return self.fetch_add_async(value, timeout).wait()

    def fetch_add_async(self, value: int, timeout: float = DEFAULT_TIMEOUT_S) -> RemoteWork[int]:
        """The same as a work, whose wait() returns what it was before.

        Several of one process are made in any order.
        """
        check_word(self._kind, self._name)
        check_timeout(timeout)
        operand = to_word("value", value, self.dtype)
        return self._updated(self._opened.fetch_add(self._offset, operand, timeout))

    def compare_swap(self, expected: int, desired: int, timeout: float = DEFAULT_TIMEOUT_S) -> int:
        """Sets this element to `desired` if it is `expected`, and returns what it was before.

        So it was set if `expected` comes back. Else as fetch_add().
        """
        return self.compare_swap_async(expected, desired, timeout).wait()

    def compare_swap_async(
        self, expected: int, desired: int, timeout: float = DEFAULT_TIMEOUT_S
    ) -> RemoteWork[int]:
        """The same as a work, as fetch_add_async()."""
        check_word(self._kind, self._name)
        check_timeout(timeout)
        words = to_word("expected", expected, self.dtype), to_word("desired", desired, self.dtype)
        return self._updated(self._opened.compare_swap(self._offset, *words, timeout))

    def _updated(self, update: _C.RemoteWork) -> RemoteWork[int]:
        return RemoteWork(update, lambda: from_word(update.result(), self.dtype))

    def fence(self, timeout: float = DEFAULT_TIMEOUT_S) -> None:
        """Waits until the owner sees all that this process has written there before."""
        check_timeout(timeout)
        RemoteWork(self._opened.fence(timeout), nothing).wait()

    def _rows(self, rows: torch.Tensor | list[int]) -> tuple[torch.Tensor, Kind]:
        """Their indices, all of which are here, and what they are together."""
        indices = as_indices("rows", rows)
        if not self._kind.shape:
            raise IndexError("a tensor without dimensions has no rows")
        outside = indices[(indices < 0) | (indices >= len(self))]
        if len(outside) > 0:
            raise IndexError(f"row {int(outside[0])} is not in a tensor of {len(self)} rows")
        return indices, Kind(self.dtype, (len(indices), *self._kind.shape[1:]))

    def _check(self, tensor: torch.Tensor, argument: str, kind: Kind) -> None:
        check_tensor(argument, tensor)
        if kind_of(tensor) != kind:
            raise ValueError(
                f"{argument} has shape {tuple(tensor.shape)} and dtype {tensor.dtype}; "
                f"{self._name!r} there has {kind.shape} and {kind.dtype}"
            )


def _check_notify(notify: int | None) -> None:
    if notify is not None and notify < 1:
        raise ValueError(f"notify={notify}; give 1 or more")


@dataclass(frozen=True)
class Owner:
    """Another process that exposes something."""

    address: bytes
    who: str  # for people


def open(
    name: str,
    on: int | None = None,
    at: str | None = None,
    timeout: float = DEFAULT_TIMEOUT_S,
    group: dist.ProcessGroup | None = None,
) -> RemoteTensor:
    """The tensor that another process exposes under this name; waits until it does.

    on: the owner, as a rank of the group. at: instead of that, what remote.address() has returned
    there; the owner may be of another job, which has the same secret. group: by which others are
    reached; None is the default group. The owner's program may compute meanwhile.
    timeout: in seconds. Any thread.
    Raises ValueError for a rank that is not of the group, or this one, for what is no address, and
    for both or none of the two; TimeoutError, PeerError.
    """
    check_name(name)
    check_timeout(timeout)
    owner = owner_of(on, at, group)
    opened = open_raw(name, owner, timeout, group)
    kind = decode(opened.meta, opened.nbytes, owner.who)
    return RemoteTensor(opened, kind, 0, name)


def address(group: dist.ProcessGroup | None = None) -> str:
    """By which others open what this process exposes, with remote.open(name, at=...).

    A line of printable characters that means nothing to people. It is no secret: who uses it has to
    prove that it knows the job's. group: by which others are reached; None is the default group.
    """
    own = backend(group)._address_of(backend(group).rank())
    assert own is not None
    return base64.b85encode(zlib.compress(own)).decode()


def owner_of(on: int | None, at: str | None, group: dist.ProcessGroup | None) -> Owner:
    if (on is None) == (at is None):
        raise ValueError(f"on={on!r} and at={at!r}; give one of the two")
    if at is None:
        assert on is not None
        return _rank(on, group)
    if not isinstance(at, str):
        raise TypeError(f"at is a {type(at).__name__}; give what remote.address() returned")
    try:
        return Owner(zlib.decompress(base64.b85decode(at)), "the owner")
    except (ValueError, zlib.error):
        raise ValueError(
            f"at={at[:40]!r} is no address; give what remote.address() returned at the owner"
        ) from None


def open_raw(
    name: str, owner: Owner, timeout: float, group: dist.ProcessGroup | None
) -> _C.RemoteOpened:
    return face(group).open(owner.address, owner.who, name, timeout)


def _rank(on: int, group: dist.ProcessGroup | None) -> Owner:
    of_group = backend(group)
    world = of_group.size()
    if isinstance(on, bool) or not isinstance(on, int):
        raise TypeError(f"on is a {type(on).__name__}; give a rank")
    if not 0 <= on < world:
        raise ValueError(f"on={on} is not a rank of a group of {world}")
    if on == of_group.rank():
        raise ValueError(f"on={on} is this rank itself; use the tensor that it has exposed")
    of_rank = of_group._address_of(on)
    if of_rank is None:
        raise ValueError(f"rank {on} is not known to this rank any more; make the group anew")
    return Owner(of_rank, f"rank {on}")
