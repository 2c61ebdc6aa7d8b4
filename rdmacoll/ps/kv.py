"""KV: tables of the job's servers, by names: what is pushed there, all workers pull."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from .._extension import extension
from ..remote.memory.checks import as_indices, check_name
from ..remote.memory.kind import kind_to_make
from .base.optimizers import (
    Constant,
    Initial,
    Optimizer,
    as_text,
    initial_to_engine,
    to_engine,
)
from .base.pending import Pending
from .base.rates import AS_MADE, Rates, with_lr
from .base.tensors import check_out, check_range, check_room, check_shape, host_room, host_values
from .board import Generation, Table
from .drop import drop
from .worker import DEFAULT_TIMEOUT_S, worker

if TYPE_CHECKING:
    from .. import _C
    from .clock import Member


ZEROS = Constant()
MOST_DIM = 64 * 1024  # as csrc/ps/table/table_spec.h has it
MOST_ROWS = (1 << 63) - 1  # ids are int64


@dataclasses.dataclass(frozen=True)
class Pace:
    """Of a table whose workers go in step: each pushes its first elements once in each step."""

    elements: int
    is_sync: bool


class KV:
    """The tables of the job's servers. All KVs of a job see the same ones."""

    def __init__(
        self, timeout: float = DEFAULT_TIMEOUT_S, group: dist.ProcessGroup | None = None
    ) -> None:
        """timeout: of each call and wait, in seconds. group, errors: as of ps.connect()."""
        self._worker = worker(timeout, group)
        self._client = self._worker.client
        self._timeout = timeout
        self._tables: dict[str, Table] = {}

    def init(self, name: str, values: torch.Tensor, optimizer: Optimizer | None = None) -> None:
        """A dense table, of the shape and the values of this float32 tensor.

        Every worker calls it before it uses the table; of those who do, the first one's values
        count, and all return when the table has them. optimizer: what servers apply pushes with;
        None: what is pushed is added.
        Raises ValueError where the table is another one for who was first, TypeError, TimeoutError.
        """
        self._init_paced(name, values, optimizer, None)

    def _init_paced(
        self, name: str, values: torch.Tensor, optimizer: Optimizer | None, pace: Pace | None
    ) -> None:
        """init(); of a table whose workers go in step where there is a pace."""
        check_name(name)
        values = host_values(values)
        spec = extension().PsTableSpec.dense(name, values.numel(), to_engine(optimizer))
        if pace is not None:
            spec = spec.paced(pace.elements, pace.is_sync)
        table, is_first = self._add(name, spec, tuple(values.shape), ["dense", as_text(optimizer)])
        if is_first:
            self._client.assign(table.number, values, self._timeout).wait(self._timeout)
            self._worker.board.say_ready(table.number)
        self._worker.board.wait_ready(table.number, name, time.monotonic() + self._timeout)

    def _init_clock(self, name: str) -> None:
        """A table that counts the steps of workers alone; no snapshot has it."""
        self._init_paced(name, torch.zeros(1), None, Pace(1, is_sync=False))
        del self._worker.tables[name]

    def init_rows(
        self,
        name: str,
        dim: int,
        rows: int | None = None,
        optimizer: Optimizer | None = None,
        initial: Initial = ZEROS,
    ) -> None:
        """A table of rows of `dim` float32 each. A row is made when it is first pulled or pushed.

        rows: ids are 0 to rows - 1; None: any integer. initial: what rows begin with. Else as
        init().
        """
        check_name(name)
        for argument, value, most in (
            ("dim", dim, MOST_DIM),
            ("rows", 1 if rows is None else rows, MOST_ROWS),
        ):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{argument} is a {type(value).__name__}; give an integer")
            if not 1 <= value <= most:
                raise ValueError(f"{argument}={value}; give 1 to {most}")
        spec = extension().PsTableSpec.rows(
            name, dim, rows or 0, to_engine(optimizer), *initial_to_engine(initial)
        )
        self._add(name, spec, (dim,), ["rows", as_text(optimizer)])

    def _add(
        self, name: str, spec: _C.PsTableSpec, shape: tuple[int, ...], about: list[str]
    ) -> tuple[Table, bool]:
        self._worker.check_process()
        encoded = spec.encode()
        table, is_first = self._worker.board.add_table(name, encoded, shape, about)
        if (table.spec, table.shape) != (encoded, shape):
            raise ValueError(
                f"table {name!r} is another one for the worker that was first to make it: give all "
                "workers the same shape, optimizer, initial values and mode"
            )
        self._client.create(table.number, table.spec)
        self._tables[name] = self._worker.tables[name] = table
        return table, is_first

    def drop(self, name: str) -> None:
        """The table is no more, and all servers have freed its memory when this returns.

        So are those whose names begin with `name/`: a module with a pace and a ps.Optimizer have
        such. One worker calls it, whether or not it has made the table, when none uses it any more:
        who still does gets a ValueError. A table of that name may be made anew.
        Raises ValueError where there is none, TimeoutError that names a server. Any thread.
        """
        check_name(name)
        self._worker.check_process()
        drop(self._worker, name, self._timeout)

    def empty(self, *size: int | tuple[int, ...]) -> torch.Tensor:
        """A float32 tensor of zeros that servers of this host read by themselves.

        What is pushed of it, in one piece, is not copied. So it is not to be changed until the push
        has ended, which wait() says: else a table and its backup differ.
        size: integers, or one tuple of them. The memory is freed some time after its last tensor.
        Raises ValueError for a negative size, OSError where there is no memory. Any thread.
        """
        kind = kind_to_make(size, torch.float32)
        self._worker.check_process()
        memory = self._client.lend(kind.bytes, self._timeout)
        return memory.view(kind.dtype).view(kind.shape)

    def push(self, name: str, values: torch.Tensor, *, lr: float | None = None) -> Pending:
        """Hands a gradient for the whole table to the servers; returns when it may be changed.

        What a worker pulls after it has called push() has that push in it; while a server is being
        replaced, after it has waited for it. values: float32, of the table's shape; of empty() they
        are changed when the push has ended. lr: of this push; None: that of the table's optimizer.
        Raises ValueError, TypeError, TimeoutError, remote.PeerError. Any thread.
        """
        table = self._table(name)
        values = host_values(values)
        check_shape("values", values, table.shape, name)
        return self._push(name, 0, values, with_lr(lr))

    def push_range(
        self, name: str, first: int, values: torch.Tensor, *, lr: float | None = None
    ) -> Pending:
        """The same for the elements from `first` on of the flattened table; values: of one
        dimension."""
        values = host_values(values)
        check_range("values", values, first, math.prod(self._table(name).shape), name)
        return self._push(name, first, values, with_lr(lr))

    def _push(self, name: str, first: int, values: torch.Tensor, rates: Rates) -> Pending:
        number = self._table(name).number
        return self._pending(self._client.push(number, first, values, rates, self._timeout))

    def pull(self, name: str, out: torch.Tensor | None = None) -> torch.Tensor:
        """The table's values, in `out` (float32, of its shape), or in a new tensor."""
        pulled = self.pull_async(name, out).wait()
        assert pulled is not None
        return pulled

    def pull_async(self, name: str, out: torch.Tensor | None = None) -> Pending:
        """The same; its wait() returns the tensor, which is written until then."""
        into = self._out(name, out)
        number = self._table(name).number
        host = host_room(into)
        return self._pending(self._client.pull(number, 0, host, 0, self._timeout), into, host)

    def pull_range(self, name: str, first: int, out: torch.Tensor) -> torch.Tensor:
        """As many elements of the flattened table as `out` has, from `first` on; out: float32, of
        one dimension."""
        pulled = self.pull_range_async(name, first, out).wait()
        assert pulled is not None
        return pulled

    def pull_range_async(self, name: str, first: int, out: torch.Tensor) -> Pending:
        """The same; its wait() returns the tensor, which is written until then."""
        table = self._table(name)
        check_room(out)
        check_range("out", out, first, math.prod(table.shape), name)
        host = host_room(out)
        pulled = self._client.pull(table.number, first, host, 0, self._timeout)
        return self._pending(pulled, out, host)

    def push_pull(
        self,
        name: str,
        values: torch.Tensor,
        out: torch.Tensor | None = None,
        *,
        lr: float | None = None,
    ) -> torch.Tensor:
        """push(), then pull()."""
        into = self._out(name, out)
        pushed = self.push(name, values, lr=lr)
        pulled = self.pull(name, into)
        pushed.wait()
        return pulled

    def row_push(
        self,
        name: str,
        ids: torch.Tensor | list[int],
        values: torch.Tensor,
        *,
        lr: float | None = None,
    ) -> Pending:
        """Hands gradients of rows to the servers; those of one id are added up first.

        ids: integers. values: float32, a row for each id. Else as push().
        """
        table, numbers = self._rows(name, ids)
        values = host_values(values)
        check_shape("values", values, (len(numbers), *table.shape), name)
        rates = with_lr(lr)
        return self._pending(
            self._client.push_rows(table.number, numbers, values, rates, self._timeout)
        )

    def row_pull(
        self, name: str, ids: torch.Tensor | list[int], out: torch.Tensor | None = None
    ) -> torch.Tensor:
        """These rows, in their order, in `out` (float32, a row for each id) or in a new tensor."""
        pulled = self.row_pull_async(name, ids, out).wait()
        assert pulled is not None
        return pulled

    def row_pull_async(
        self, name: str, ids: torch.Tensor | list[int], out: torch.Tensor | None = None
    ) -> Pending:
        """The same; its wait() returns the tensor, which is written until then."""
        table, numbers = self._rows(name, ids)
        shape = (len(numbers), *table.shape)
        into = torch.empty(shape) if out is None else out
        check_out(into, shape, name)
        host = host_room(into)
        pulled = self._client.pull_rows(table.number, numbers, host, self._timeout)
        return self._pending(pulled, into, host)

    # --- tables with a pace, for ps.Optimizer and Clock ---------------------------------------

    def _begin_generation(self, name: str, generation: Generation, step: int) -> Pending:
        """From now on its workers go in step in this table. step: that all have made, where each
        steps for itself; else it is the last one that is whole."""
        begun, workers = generation.number, generation.workers
        return self._pending(
            self._client.begin_generation(
                self._table(name).number, begun, workers, step, self._timeout
            )
        )

    def _push_step(
        self,
        name: str,
        gradient: torch.Tensor,
        step: int,
        member: Member,
        rates: Rates = AS_MADE,
    ) -> Pending:
        """This worker's gradient of a step; steps count from 1."""
        of_step = (member.rank, step, member.generation, rates)
        return self._pending(
            self._client.push_step(self._table(name).number, gradient, *of_step, self._timeout)
        )

    def _pull_step(self, name: str, out: torch.Tensor, step: int, first: int = 0) -> Pending:
        """Elements from `first` on, once all workers have pushed that step; 0: as they are."""
        number = self._table(name).number
        return self._pending(self._client.pull(number, first, out, step, self._timeout), out)

    def _steps_of(self, name: str, workers: int, timeout: float | None = None) -> list[int]:
        """Of each worker, by its rank, the last step that it has pushed; 0: it is none of them."""
        limit = self._timeout if timeout is None else timeout
        return self._client.pull_steps(self._table(name).number, workers, limit)

    def wait(self, *pending: Pending) -> None:
        """Waits for all of these."""
        for one in pending:
            one.wait()

    def _pending(
        self,
        batch: _C.PsBatch,
        out: torch.Tensor | None = None,
        host: torch.Tensor | None = None,
    ) -> Pending:
        staged = None if host is out else host
        return Pending(batch, out, self._timeout, self._worker.about_store, staged)

    def _table(self, name: str) -> Table:
        if name not in self._tables:
            check_name(name)
            raise ValueError(f"name={name!r} is no table of this KV; make it with init() first")
        return self._tables[name]

    def _out(self, name: str, out: torch.Tensor | None) -> torch.Tensor:
        """Where the whole table goes."""
        table = self._table(name)
        into = torch.empty(table.shape) if out is None else out
        check_out(into, table.shape, name)
        return into

    def _rows(self, name: str, ids: torch.Tensor | list[int]) -> tuple[Table, torch.Tensor]:
        numbers = as_indices("ids", ids)
        return self._table(name), numbers.cpu()
