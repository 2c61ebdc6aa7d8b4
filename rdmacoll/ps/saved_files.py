"""A snapshot's files, in the format of torch.distributed.checkpoint. Pieces are read from servers
when they are written, and pushed to them when they are read, so that there is one at a time.

Floor: rdmacoll/ps. Thread: the one that takes the snapshot.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadPlan,
    ReadItem,
    SavePlan,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from .saved_pieces import Chunk, Kept, Piece


class Planner(DefaultSavePlanner):
    """Plans to write these pieces, which are read one after the other."""

    def __init__(self, pieces: Sequence[Piece], tensors: dict[str, Kept]) -> None:
        """tensors: those that the pieces of all workers together make."""
        super().__init__()
        self._pieces, self._tensors = pieces, tensors
        self._chunks: dict[tuple[str, tuple[int, ...]], tuple[Piece, Chunk]] = {}
        self._read: tuple[Piece, dict[str, torch.Tensor]] | None = None

    def create_local_plan(self) -> SavePlan:
        items = []
        for piece in self._pieces:
            for chunk in piece.chunks:
                self._chunks[chunk.name, chunk.offsets] = (piece, chunk)
                items.append(_write_item(chunk, self._tensors[chunk.name]))
        return SavePlan(items, planner_data={name: (name,) for name in self._tensors})

    def resolve_data(self, write_item: WriteItem) -> torch.Tensor:
        """Those of one piece are asked for one after the other."""
        index = write_item.index
        assert index.offset is not None
        piece, chunk = self._chunks[index.fqn, tuple(index.offset)]
        if self._read is None or self._read[0] is not piece:
            self._read = None  # so that there are no two
            self._read = (piece, piece.read())
        return chunk.within(self._read[1])


def _write_item(chunk: Chunk, kept: Kept) -> WriteItem:
    return WriteItem(
        index=MetadataIndex(chunk.name, chunk.offsets),
        type=WriteItemType.SHARD,
        tensor_data=TensorWriteData(
            chunk=_stored(chunk),
            properties=TensorProperties(dtype=kept.dtype),
            size=torch.Size(kept.shape),
        ),
    )


def _stored(chunk: Chunk) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(offsets=torch.Size(chunk.offsets), sizes=torch.Size(chunk.sizes))


class Writer(FileSystemWriter):
    """Writes in the plan's order: torch's own one sorts by size where there is a GPU."""

    def write_data(self, plan: SavePlan, planner: Any) -> Future[list[WriteResult]]:
        name = f"{plan.storage_data.prefix}0.distcp"
        results = []
        with open(Path(self.path) / name, "wb") as file:
            for item in plan.items:
                # In memory first: torch.save into a file hides what the system says of it.
                image = io.BytesIO()
                torch.save(planner.resolve_data(item).clone(), image)
                begin = file.tell()
                file.write(image.getbuffer())
                where = _StorageInfo(name, begin, image.tell())
                results.append(WriteResult(item.index, image.tell(), where))
            file.flush()
            os.fsync(file.fileno())
        future: Future[list[WriteResult]] = Future()
        future.set_result(results)
        return future


class _Into(DefaultLoadPlanner):
    """Where what is read goes."""

    def __init__(self, parts: dict[str, torch.Tensor], chunks: list[Chunk]) -> None:
        super().__init__()
        self._places = {(chunk.name, chunk.offsets): chunk.within(parts) for chunk in chunks}

    def resolve_tensor(self, read_item: ReadItem) -> torch.Tensor:
        index = read_item.dest_index
        assert index.offset is not None
        place = self._places[index.fqn, tuple(index.offset)]
        for dim, (offset, length) in enumerate(
            zip(read_item.dest_offsets, read_item.lengths, strict=True)
        ):
            place = place.narrow(dim, offset, length)
        return place

    def commit_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> None:
        pass


class Reader:
    """A snapshot that is there."""

    def __init__(self, path: str) -> None:
        """Raises FileNotFoundError."""
        self._reader = FileSystemReader(path)
        try:
            self.metadata: Metadata = self._reader.read_metadata()
        except FileNotFoundError:
            raise FileNotFoundError(
                f"path={path!r} is no snapshot: there is no file .metadata; give the path that "
                "ps.snapshot() has returned from"
            ) from None
        self._reader.set_up_storage_reader(self.metadata, True)

    @property
    def tensors(self) -> dict[str, TensorStorageMetadata]:
        return {
            name: stored
            for name, stored in self.metadata.state_dict_metadata.items()
            if isinstance(stored, TensorStorageMetadata)
        }

    def read(self, piece: Piece) -> dict[str, torch.Tensor]:
        parts, chunks = piece.empty(), piece.chunks
        items: list[ReadItem] = []
        for name in parts:
            boxes = [_stored(chunk) for chunk in chunks if chunk.name == name]
            items += create_read_items_for_chunk_list(name, self.tensors[name], boxes)
        self._reader.read_data(LoadPlan(items), _Into(parts, chunks)).wait()
        return parts
