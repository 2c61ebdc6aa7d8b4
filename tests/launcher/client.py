"""A rank's side of the rendezvous, in python: copied beside the scripts that the ranks run.

Floor: tests.
"""

import os
import socket
import struct

RANK = int(os.environ.get("RANK", "0"))  # a server has none
WORLD = int(os.environ["WORLD_SIZE"])


class Refused(Exception):
    pass


def connect() -> socket.socket:
    address = os.environ["RDMACOLL_AGENT"]
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect("\0" + address[1:] if address[0] == "@" else address)
    return sock


def hello(
    payload: bytes, rank: int = RANK, world: int = WORLD, magic: bytes = b"RDMACOL1"
) -> bytes:
    return struct.pack("<8sIII", magic, rank, world, len(payload)) + payload


def answer(sock: socket.socket) -> list[bytes]:
    stream = sock.makefile("rb")

    def u32() -> int:
        return int(struct.unpack("<I", stream.read(4))[0])

    if u32() != 0:
        raise Refused(stream.read(u32()).decode())
    payloads = [stream.read(u32()) for _ in range(u32())]
    assert stream.read() == b""
    return payloads


def exchange(payload: bytes) -> list[bytes]:
    with connect() as sock:
        sock.sendall(hello(payload))
        return answer(sock)


def secret() -> bytes:
    with connect() as sock:
        sock.sendall(hello(b"", magic=b"RDMACOLS"))
        stream = sock.makefile("rb")
        accepted, length = struct.unpack("<II", stream.read(8))
        assert accepted == 0
        return stream.read()[:length]
