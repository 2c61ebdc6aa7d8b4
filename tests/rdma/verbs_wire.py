"""What goes over the wire, and the addresses and keys, written down a second time: a reader of
csrc/transport/verbs/connection/wire.h and address.cc must come to the same bytes.

Floor: tests.
"""

import struct
from typing import NamedTuple

RECEIVE_DEPTH = 256  # signals at a receiver; also the window
RECEIVE_BATCH = 32
SIGNAL_BYTES = 128  # apart in the signal ring
ROOM_OFFSET = RECEIVE_DEPTH * SIGNAL_BYTES
MAILBOX_BYTES = ROOM_OFFSET + 64
LINE_BYTES = 64

# Immediates: the line of a region, or a notice.
NOTICE_REGION = 4095
GOODBYE = 1
MARK = 2
REGION_CLOSED = 3  # with a record: which one, of which generation
REGION_WITHDRAWN = 4

# What the sender of a handshake knows.
NOTHING, YOURS, BOTH, REFUSES = range(4)


def immediate(region: int, line: int) -> int:
    return region << 20 | line


_ADDRESS = struct.Struct("<8s16s16sIIIHBB64s")
_ADDRESS_MAGIC = b"rdmavc01"


class Address(NamedTuple):
    process: bytes
    gid: bytes
    pid: int
    listener: int
    listener_key: int
    lid: int
    mtu: int
    is_ethernet: int
    host: bytes

    def pack(self) -> bytes:
        return _ADDRESS.pack(_ADDRESS_MAGIC, *self)

    @classmethod
    def unpack(cls, data: bytes) -> "Address":
        magic, *fields = _ADDRESS.unpack(data)
        assert magic == _ADDRESS_MAGIC
        return cls(*fields)


_KEY = struct.Struct("<8s16sQQQII")
_KEY_MAGIC = b"rdmavk02"


class Key(NamedTuple):
    owner: bytes
    generation: int
    address: int
    size: int
    region: int
    rkey: int

    def pack(self) -> bytes:
        return _KEY.pack(_KEY_MAGIC, *self)

    @classmethod
    def unpack(cls, data: bytes) -> "Key":
        magic, *fields = _KEY.unpack(data)
        assert magic == _KEY_MAGIC
        return cls(*fields)


# The signature is zeros in a job without a secret.
_HELLO = struct.Struct("<Q16s16sQIII32sBxH16sIIIHBB64s32x")
_HELLO_MAGIC = 0x36306C6C6F63726D
HELLO_BYTES = _HELLO.size


class Hello(NamedTuple):
    sender: Address
    receiver: bytes
    signal_ring: int
    signal_ring_rkey: int
    sequence: int
    numbers: tuple[int, ...]
    knows: int
    offers: int = 0

    def pack(self) -> bytes:
        sender, receiver, ring, rkey, sequence, numbers, knows, offers = self
        places = struct.pack(f"<{len(numbers)}I", *numbers)
        process, gid, pid, *listener, lid, mtu, is_ethernet, host = sender
        joins = (process, receiver, ring, rkey, sequence, len(numbers), places)
        reached = (gid, *listener, pid, lid, mtu, is_ethernet, host)
        return _HELLO.pack(_HELLO_MAGIC, *joins, knows, offers, *reached)

    @classmethod
    def unpack(cls, data: bytes) -> "Hello":
        magic, process, receiver, *joins, knows, offers = (fields := _HELLO.unpack(data))[:10]
        gid, listener, key, pid, lid, mtu, is_ethernet, host = fields[10:]
        assert magic == _HELLO_MAGIC
        ring, rkey, sequence, stripes, places = joins
        numbers = struct.unpack("<8I", places)[:stripes]
        sender = Address(process, gid, pid, listener, key, lid, mtu, is_ethernet, host)
        return cls(sender, receiver, ring, rkey, sequence, numbers, knows, offers)


_LETTER = struct.Struct("<QIIIIBBxx")


class SignalRecord(NamedTuple):
    counter: int
    signature: int = 0
    size: int = 0
    returned: int = 0
    stripes: int = 0  # bit j: a mark on queue pair j comes before it
    inline_data: bytes = b""
    credit: int = 0

    def pack(self) -> bytes:
        head = (*self[:4], self.credit, self.stripes, len(self.inline_data))
        return _LETTER.pack(*head) + self.inline_data

    @classmethod
    def unpack(cls, data: bytes) -> "SignalRecord":
        counter, signature, size, returned, credit, stripes, count = _LETTER.unpack_from(data)
        inline_data = data[_LETTER.size : _LETTER.size + count]
        return cls(counter, signature, size, returned, stripes, inline_data, credit)
