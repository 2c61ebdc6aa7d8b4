"""Dumps as torch's own flight recorder writes them, for torchfrtrace. Pure but for the files.

torch's analyser knows neither our name (it takes gloo's) nor operations whose ranks give different
sizes (it would call them mismatched), so sizes are those of the whole operation. It matches single
sends and receives with nothing, so these are left out; the diagnosis of `rdmacoll debug` has them.
"""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rdmacoll.base import files

from .dumps import Dump, Group, Operation

VERSION = "2.10"
PREFIX = "rdmacoll_rank_"
STATES = {"queued": "scheduled", "running": "started", "done": "completed", "failed": "started"}
# Names under which torch's analyser does not expect one side to be the world's multiple of the
# other.
NAMES = {
    "all_gather": "_all_gather_base",
    "reduce_scatter": "reduce_scatter_v",
}
# DType's names are torch's but for these.
DTYPES = {"Float64": "Double", "Float32": "Float", "Float16": "Half", "Int64": "Long",
          "Int32": "Int", "Int16": "Short", "Int8": "Char", "UInt8": "Byte",
          "Complex64": "ComplexFloat", "Complex128": "ComplexDouble"}  # fmt: skip
DTYPE_BYTES = {"Float64": 8, "Float32": 4, "Float16": 2, "BFloat16": 2, "Int64": 8, "Int32": 4,
               "Int16": 2, "Int8": 1, "UInt64": 8, "UInt32": 4, "UInt16": 2, "UInt8": 1, "Bool": 1,
               "Complex64": 8, "Complex128": 16}  # fmt: skip

GroupKey = tuple[str, tuple[int, ...]]


def write_for_torch(dumps: Sequence[Dump], folder: Path) -> None:
    """One file per rank; `torchfrtrace FOLDER` reads them."""
    files.make_folder(folder)
    first = _first_sequences(dumps)
    for dump in dumps:
        files.write(folder / f"{PREFIX}{dump.rank}", pickle.dumps(_as_torch(dump, first)))


def _first_sequences(dumps: Sequence[Dump]) -> dict[GroupKey, int]:
    """Of each group, from where on all who remember anything of it remember all."""
    first: dict[GroupKey, int] = {}
    for dump in dumps:
        oldest: dict[GroupKey, int] = {}
        for operation in dump.operations:
            group = dump.groups.get(operation.group)
            # What is in flight is kept beyond its time, and says nothing of the others' age.
            if group is not None and operation.is_collective and operation.ended_ns:
                oldest.setdefault(group.key, operation.sequence)
        for key, sequence in oldest.items():
            first[key] = max(first.get(key, 0), sequence)
    return first


def _as_torch(dump: Dump, first: dict[GroupKey, int]) -> dict[str, Any]:
    entries: list[dict[str, Any]] = []
    for operation in dump.operations:
        group = dump.groups.get(operation.group)
        if group is None or not operation.is_collective:
            continue
        if operation.sequence >= first.get(group.key, 0):
            entries.append(_entry(dump, group, operation, len(entries)))
    configs = {
        group.name: {"name": group.name, "desc": "undefined", "ranks": str(list(group.ranks))}
        for group in dump.groups.values()
    }
    return {"version": VERSION, "pg_config": configs, "pg_status": {}, "entries": entries}


def _entry(dump: Dump, group: Group, operation: Operation, number: int) -> dict[str, Any]:
    sizes = [[_elements(group, operation)]]
    dtypes = [DTYPES.get(operation.dtype, operation.dtype or "Byte")]
    return {
        "record_id": number,
        "pg_id": group.id,
        "process_group": (group.name, "undefined"),
        "collective_seq_id": operation.sequence,
        "p2p_seq_id": 0,
        "op_id": operation.sequence,
        "profiling_name": "gloo:" + NAMES.get(operation.name, operation.name),
        "time_created_ns": dump.wall(operation.queued_ns),
        "time_discovered_started_ns": _wall(dump, operation.started_ns),
        "time_discovered_completed_ns": _wall(dump, operation.ended_ns),
        "input_sizes": sizes,
        "output_sizes": sizes,
        "input_dtypes": dtypes,
        "output_dtypes": dtypes,
        "state": STATES[operation.state],
        "retired": operation.is_done,
        "is_p2p": False,
        "timeout_ms": 0,
        "frames": [],
    }


def _elements(group: Group, operation: Operation) -> int:
    count = operation.bytes // DTYPE_BYTES.get(operation.dtype, 1)
    if operation.name in ("gather", "scatter") and operation.root == group.rank:
        return count // len(group.ranks)  # the root has everybody's share
    return count // 2 if operation.name == "all_to_all" else count  # what goes out and comes in


def _wall(dump: Dump, clock_ns: int) -> int | None:
    return dump.wall(clock_ns) if clock_ns else None
