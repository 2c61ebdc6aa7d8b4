"""snapshot, restore: tables of the job's servers on disk, and back.

Floor: rdmacoll/ps. Thread: any; one at a time in a process.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.storage import WriteResult

from .._extension import extension
from .base.crew import Crew
from .saved_files import Planner, Reader, Writer
from .saved_pieces import (
    Kept,
    Piece,
    RowPiece,
    Saved,
    all_names,
    dense_pieces,
    list_rows,
    pushes_name,
    row_pieces,
)
from .worker import DEFAULT_TIMEOUT_S, Worker, worker

Path_ = str | os.PathLike[str]
UNFINISHED = ".unfinished"

_one_at_a_time = threading.Lock()


def snapshot(
    path: Path_,
    tables: Iterable[str] | None = None,
    *,
    alone: bool = False,
    group: dist.ProcessGroup | None = None,
    timeout: float = DEFAULT_TIMEOUT_S,
) -> None:
    """Writes tables, with the state and the steps of their optimizers, into a new folder.

    It is a checkpoint of torch.distributed.checkpoint. Pushes go on meanwhile: a shard of a dense
    table and a row are each of one moment, but not all of the same one; see the page for what that
    means. The folder is there when all of it is on disk, or not at all.

    path: what does not exist yet. All workers see it. tables: names; None: all that this worker
    has made. alone: this worker writes all, and no other one calls. Else all workers of the group
    call, and each writes a part. group: None is the default group. timeout: of each wait for
    servers, in seconds.
    Raises FileExistsError; OSError where the disk is full; ValueError for a table that this worker
    has not made; TimeoutError, remote.PeerError. Training can go on after each of them.
    """
    at = worker(timeout, group)
    with _one_at_a_time:
        crew = _crew(at, alone, group)
        final = Path(path)
        unfinished = final.with_name(final.name + UNFINISHED)
        chosen = _choose(crew, at, tables, timeout)
        crew.first(lambda: _make(final, unfinished))
        try:
            pieces, tensors = _plan(crew, chosen)
            _write(crew, unfinished, pieces, tensors)
            crew.first(lambda: _publish(unfinished, final))
        except BaseException:
            if crew.rank == 0:
                shutil.rmtree(unfinished, ignore_errors=True)
            raise


def restore(
    path: Path_,
    tables: Iterable[str] | None = None,
    *,
    alone: bool = False,
    group: dist.ProcessGroup | None = None,
    timeout: float = DEFAULT_TIMEOUT_S,
) -> None:
    """Gives tables the values, the state and the steps that a snapshot has.

    All workers have made the tables before, by init(), init_rows(), ps.Optimizer or
    ps.EmbeddingBag, with the same shape and kind of optimizer; hyperparameters may be others.
    Nobody pushes meanwhile. The numbers of servers and workers may be others than before. A table
    of rows has those of the snapshot then, and no others. Each ps.Optimizer of a worker that calls
    gives its parameters the new values.

    path: as it was given to snapshot(). tables: names; None: all that this worker has made, which
    are all that the snapshot has. Else as snapshot(): workers share the work.
    Raises FileNotFoundError; ValueError that names tables which miss or differ, before anything is
    changed; TimeoutError, remote.PeerError, after which it has to be called again.
    """
    at = worker(timeout, group)
    with _one_at_a_time:
        crew = _crew(at, alone, group)
        chosen = _choose(crew, at, tables, timeout)
        names = [saved.name for saved in chosen]
        readers: list[Reader] = []
        crew.step(lambda: readers.append(_open(path, chosen, is_all=tables is None)))
        reader = readers[0]
        crew.first(lambda: _empty(chosen))
        crew.step(lambda: _read(crew, reader, chosen))
    for copy in list(at.copies):
        if any(flat.table in names for flat in copy._tables):
            copy._pull()


def _crew(at: Worker, alone: bool, group: dist.ProcessGroup | None) -> Crew:
    if not alone:
        at.check_rank("alone=False", "alone=True")
    return Crew(alone, group)


def _choose(crew: Crew, at: Worker, tables: Iterable[str] | None, timeout: float) -> list[Saved]:
    def choose() -> list[str]:
        if isinstance(tables, str):
            raise TypeError(f"tables is a string; give a list of names: [{tables!r}]")
        at.forget_dropped()
        names = sorted(at.tables if tables is None else set(tables))
        unknown = [name for name in names if name not in at.tables]
        if unknown:
            raise ValueError(
                f"tables={unknown}: this worker has made no such tables; call init(), init_rows(), "
                "ps.Optimizer or ps.EmbeddingBag first"
            )
        if not names:
            raise ValueError("there are no tables; make them first")
        return names

    names, *others = crew.step(choose)
    for rank, of_other in enumerate(others, 1):
        if of_other != names:
            odd = sorted(set(of_other) ^ set(names))
            raise ValueError(
                f"workers 0 and {rank} do not have the same tables: {odd}; make them on all "
                "workers, name the same ones, or give alone=True to one worker"
            )
    return [Saved(at.client, name, at.tables[name], timeout) for name in names]


# --- writing ------------------------------------------------------------------------------------


def _make(final: Path, unfinished: Path) -> None:
    if final.exists():
        raise FileExistsError(
            f"path={str(final)!r} exists; give each snapshot a path of its own, or remove it"
        )
    shutil.rmtree(unfinished, ignore_errors=True)  # of a job that has ended on the way
    unfinished.mkdir(parents=True)


def _plan(crew: Crew, chosen: list[Saved]) -> tuple[list[Piece], dict[str, Kept]]:
    """What this worker writes, and what all of them do."""
    buckets = range(extension().PS_BUCKETS)
    first, end = (len(buckets) * rank // crew.size for rank in (crew.rank, crew.rank + 1))
    ids: dict[str, torch.Tensor] = {}

    def list_all() -> dict[str, int]:
        for saved in chosen:
            if saved.spec.is_rows:
                ids[saved.name] = list_rows(saved, buckets[first:end])
        return {name: len(of_table) for name, of_table in ids.items()}

    counts = crew.step(list_all)
    pieces: list[Piece] = []
    tensors: dict[str, Kept] = {}
    for saved in chosen:
        rows = sum(count.get(saved.name, 0) for count in counts)
        kept = saved.tensors(rows)
        twice = sorted(kept.keys() & tensors.keys())
        if twice:
            raise ValueError(
                f"two tables would have a tensor {twice[0]!r} in the snapshot; write them apart, "
                "with tables="
            )
        tensors |= kept
        if not saved.spec.is_rows:
            pieces += crew.share(dense_pieces(saved))
        elif rows == 0:
            pieces += [RowPiece(saved, 0, 0, ids[saved.name])] if crew.rank == 0 else []
        else:
            before = sum(count[saved.name] for count in counts[: crew.rank])
            pieces += row_pieces(saved, before, ids[saved.name])
    return pieces, tensors


def _write(crew: Crew, path: Path, pieces: list[Piece], tensors: dict[str, Kept]) -> None:
    """What torch.distributed.checkpoint.save() does, in steps of the crew."""
    planner, writer = Planner(pieces, tensors), Writer(path)
    planner.set_up_planner({}, writer.storage_meta(), crew.rank == 0)
    writer.set_up_storage_writer(crew.rank == 0)
    plans, metadata = planner.create_global_plan(crew.step(planner.create_local_plan))
    mine = writer.prepare_global_plan(plans)[crew.rank]

    def write() -> list[WriteResult]:
        with _naming(path):
            return writer.write_data(mine, planner).value()

    results = crew.step(write)

    def finish() -> None:
        with _naming(path):
            writer.finish(metadata, results)

    crew.first(finish)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno is None:  # of a server
            raise
        why = f"{os.strerror(error.errno)}: the snapshot was not written"
        raise OSError(error.errno, why, str(path)) from error


def _publish(unfinished: Path, final: Path) -> None:
    _sync(unfinished)
    unfinished.rename(final)
    _sync(final.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- reading ------------------------------------------------------------------------------------


def _open(path: Path_, chosen: list[Saved], is_all: bool) -> Reader:
    reader = Reader(os.fspath(path))
    stored = reader.tensors
    wrong = []
    for saved in chosen:
        if saved.pushes not in stored:
            wrong.append(f"{saved.name!r} is not in the snapshot")
        else:
            wrong += _differences(saved, reader)
    if is_all:
        names = {saved.pushes for saved in chosen}
        suffix = pushes_name("")
        wrong += [
            f"{name.removesuffix(suffix)!r} is in the snapshot, and was not made here"
            for name in stored
            if name.endswith(suffix) and name not in names
        ]
    if wrong:
        raise ValueError(
            f"path={os.fspath(path)!r} does not fit this job's tables: " + "; ".join(wrong) + ": "
            "make the tables that it was taken of, or name those to restore with tables="
        )
    return reader


def _differences(saved: Saved, reader: Reader) -> list[str]:
    stored = {
        name: Kept(tuple(one.size), one.properties.dtype) for name, one in reader.tensors.items()
    }
    wanted = saved.tensors(stored[saved.pushes].shape[0])
    # Another table may have the name of a tensor of this one.
    found = {
        name: stored[name]
        for name in all_names(saved.name)
        if name in stored and (name == saved.name or pushes_name(name) not in stored)
    }
    if found.keys() != wanted.keys():
        odd = sorted(found.keys() ^ wanted.keys())
        return [f"{saved.name!r} has another kind of optimizer, or of table, than it had: {odd}"]
    return [
        f"{name!r} is {found[name].shape} of {found[name].dtype} there, and {kept.shape} here"
        for name, kept in wanted.items()
        if found[name] != kept
    ]


def _empty(chosen: list[Saved]) -> None:
    for saved in chosen:
        if saved.spec.is_rows:
            saved.wait(saved.client.empty_rows(saved.table.number, saved.timeout))


def _read(crew: Crew, reader: Reader, chosen: list[Saved]) -> None:
    pieces: list[Piece] = []
    for saved in chosen:
        if saved.spec.is_rows:
            pieces += [
                RowPiece(saved, chunk.offsets[0], chunk.sizes[0])
                for chunk in reader.tensors[saved.ids].chunks
            ]
        else:
            pieces += dense_pieces(saved)
    for piece in crew.share(pieces):
        piece.write(reader.read(piece))
