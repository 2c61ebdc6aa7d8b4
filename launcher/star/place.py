"""Where the hub listens: agent 0 says it in a line of output, and rdmarun hands that line to the
other agents. It is signed: none goes where somebody else sends it.

Floor: launcher/star. Thread: any.
"""

import json
from dataclasses import dataclass

from rdmacoll.launcher.keys.key import Key

PLACE = b"rdmarun: agent 0 listens at "
_PURPOSE = "place of agent 0"


@dataclass(frozen=True)
class Place:
    hosts: list[str]  # names and addresses of agent 0's host, the best first
    port: int

    def to_line(self, key: Key) -> bytes:
        return PLACE + key.seal(_PURPOSE, json.dumps([self.hosts, self.port]).encode()) + b"\n"

    @staticmethod
    def from_line(line: bytes, key: Key) -> "Place":
        """The line may begin with what somebody else wrote. NotOfTheJob if it is not signed."""
        sealed = line.rpartition(PLACE)[2].rstrip(b"\n")
        hosts, port = json.loads(key.unseal(_PURPOSE, sealed))
        return Place(hosts, port)
