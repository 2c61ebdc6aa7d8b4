"""Memory that both map, a copy by torch and two flags: the least that any way takes in Python.

It relies on stores that are seen in their order, as x86 has it.
"""

import mmap
import os
import tempfile

import torch

from .pair import Way

FLAGS_BYTES = 128  # one for each, in lines of their own
THEIRS = FLAGS_BYTES // 2 // 8


class Flag(Way):
    def prepare(self, size_bytes: int) -> None:
        memory = self._map(size_bytes)
        self._flags = memoryview(memory)[:FLAGS_BYTES].cast("Q")
        self._place = torch.frombuffer(memory, dtype=torch.uint8, offset=FLAGS_BYTES)
        self._number = 0
        super().prepare(size_bytes)
        if not self.pair.sends:
            self.target = self._place

    def _map(self, size_bytes: int) -> mmap.mmap:
        name = ""
        if self.pair.sends:
            fd, name = tempfile.mkstemp(prefix="rdmacoll-bench-", dir="/dev/shm")
            os.ftruncate(fd, FLAGS_BYTES + size_bytes)
            self.pair.swap(name)
        else:
            fd = os.open(self.pair.swap(name), os.O_RDWR)
        self.pair.meet()
        if name:
            os.unlink(name)
        with open(fd, "rb") as file:
            return mmap.mmap(file.fileno(), 0)

    def send(self) -> None:
        self._number += 1
        self._place.copy_(self.source)
        self._flags[0] = self._number
        while self._flags[THEIRS] != self._number:
            pass

    def serve(self, count: int) -> None:
        for _ in range(count):
            self._number += 1
            while self._flags[0] != self._number:
                pass
            self._flags[THEIRS] = self._number
