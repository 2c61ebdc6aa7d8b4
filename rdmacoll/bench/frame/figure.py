"""A picture of matplotlib as a file, whole or not at all."""

import io
from pathlib import Path
from typing import Any

from rdmacoll.base import files

# By which readers know a system that has another name on the command line.
READERS_NAMES = {"rdma": "rdmacoll", "grpc": "gRPC", "torch-rpc": "torch RPC"}


def readers_name(system: str) -> str:
    """Of "rdma, heap", too."""
    name, comma, kind = system.partition(",")
    return READERS_NAMES.get(name, name) + comma + kind


def save(figure: Any, path: Path) -> None:
    """The suffix says of what kind it is."""
    from matplotlib import rc_context

    drawn = io.BytesIO()
    with rc_context({"svg.fonttype": "none"}):  # text stays text
        figure.savefig(drawn, dpi=150, format=path.suffix.removeprefix("."))
    files.write(path, drawn.getvalue(), files.SHARED)
