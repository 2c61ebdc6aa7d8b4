"""Writes the archive an initramfs is: cpio in the newc format, all of it in memory."""

import stat

ALIGNMENT = 4


class Archive:
    """Entries in the order in which the kernel unpacks them: a folder before what lies in it."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._entries = 0

    def folder(self, path: str) -> None:
        self._add(path, stat.S_IFDIR | 0o755, b"")

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        self._add(path, stat.S_IFREG | mode, content)

    def link(self, path: str, target: str) -> None:
        self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def character_device(self, path: str, major: int, minor: int) -> None:
        self._add(path, stat.S_IFCHR | 0o600, b"", (major, minor))

    def finish(self) -> bytes:
        self._add("TRAILER!!!", 0, b"")
        return bytes(self._bytes)

    def _add(self, path: str, mode: int, content: bytes, device: tuple[int, int] = (0, 0)) -> None:
        self._entries += 1
        name = path.encode() + b"\0"
        owner_links_time = [0, 0, 1, 0]  # root's, one name, 1970
        holder = [0, 0]  # the device that holds the file
        checksum = 0
        fields = [self._entries, mode, *owner_links_time, len(content), *holder, *device]
        header = "070701" + "".join(f"{field:08X}" for field in [*fields, len(name), checksum])
        for part in (header.encode() + name, content):
            self._bytes += part
            self._bytes += bytes(-len(self._bytes) % ALIGNMENT)
