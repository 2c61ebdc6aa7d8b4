"""What one transport tells another about itself, as bytes. None of it is a secret."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, TypeVar, get_type_hints

VERSION = 1

Told = TypeVar("Told", "RdmaRemoteBuffer", "Url")


@dataclass(frozen=True)
class RdmaRemoteBuffer:
    """Memory of a transport, as its peer names it."""

    owner: str
    name: str
    length: int  # in bytes
    writable: bool

    def serialize(self) -> bytes:
        return encode(self)

    @classmethod
    def deserialize(cls, data: bytes) -> RdmaRemoteBuffer:
        """Raises TypeError for what are no bytes, ValueError for what serialize() has not made."""
        return decode(cls, data, "data")


@dataclass(frozen=True)
class Url:
    """A transport: its own name, and where its process is."""

    owner: str
    address: str


def encode(told: Url | RdmaRemoteBuffer) -> bytes:
    return json.dumps({"rdmacoll": VERSION, **asdict(told)}).encode()


def decode(kind: type[Told], data: bytes, argument: str) -> Told:
    """It comes from another process."""
    if not isinstance(data, bytes):
        raise TypeError(f"{argument} is a {type(data).__name__}; give bytes")
    types = {"rdmacoll": int, **get_type_hints(kind)}
    fields: dict[str, Any]
    try:
        fields = json.loads(data)
        right = (
            fields.keys() == types.keys()
            and all(type(fields[name]) is types[name] for name in types)
            and fields.pop("rdmacoll") == VERSION
            and fields.get("length", 0) >= 0
        )
    except (ValueError, AttributeError, RecursionError):
        right = False
    if not right:
        raise ValueError(f"{argument} is nothing that rdmacoll's transport has made: {data[:60]!r}")
    return kind(**fields)
