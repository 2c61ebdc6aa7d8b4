"""What the guest starts from: the archive, the modules in it, and the kernel out of its package.

Floor: tests.
"""

import lzma
import struct
from pathlib import Path
from typing import NamedTuple

import pytest

from guest import GuestError, cpio, initrd, kernel, modules


class Entry(NamedTuple):
    name: str
    mode: int
    content: bytes
    device: tuple[int, int]


def entries(archive: bytes) -> list[Entry]:
    """Reads cpio's newc format: thirteen numbers, a name, its file; each at a multiple of four."""
    found, at = [], 0
    while at < len(archive):
        assert archive[at : at + 6] == b"070701"
        numbers = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        name_at = at + 110
        content_at = -(-(name_at + numbers[11]) // 4) * 4
        at = -(-(content_at + numbers[6]) // 4) * 4
        name = archive[name_at : name_at + numbers[11]]
        assert name.endswith(b"\0") and at <= len(archive)
        content = archive[content_at : content_at + numbers[6]]
        found.append(Entry(name[:-1].decode(), numbers[1], content, (numbers[9], numbers[10])))
    return found


def test_archive() -> None:
    archive = cpio.Archive()
    archive.folder("dev")
    archive.character_device("dev/console", 5, 1)
    archive.file("init", b"odd", 0o755)
    archive.link("sh", "busybox")
    assert entries(archive.finish()) == [
        Entry("dev", 0o40755, b"", (0, 0)),
        Entry("dev/console", 0o20600, b"", (5, 1)),
        Entry("init", 0o100755, b"odd", (0, 0)),
        Entry("sh", 0o120777, b"busybox", (0, 0)),
        Entry("TRAILER!!!", 0, b"", (0, 0)),
    ]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder as lib/modules/X of a kernel that has four modules and one built in."""
    (tmp_path / "drivers").mkdir()
    for name, depends in {
        "rdma_rxe": "ib_uverbs,ip6-tunnel",
        "ib_uverbs": "core",
        "ip6_tunnel": "",
        "spare": "core",
    }.items():
        text = f"\x7fELF..\0license=GPL\0depends={depends}\0name={name}\0"
        (tmp_path / f"drivers/{name.replace('ip6_', 'ip6-')}.ko").write_bytes(text.encode())
    (tmp_path / "modules.builtin").write_text("kernel/lib/core.ko\n")
    return tmp_path


def test_modules_load_after_what_they_need(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "WANTED", ["rdma_rxe", "core", "ib_uverbs"])
    order = [path.stem for path in modules.load_order(package)]
    assert order == ["ib_uverbs", "ip6-tunnel", "rdma_rxe"]


def test_missing_module_is_named(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "WANTED", ["9p"])
    with pytest.raises(GuestError, match="has no module 9p"):
        modules.load_order(package)


def test_signature_is_cut_off() -> None:
    length = struct.pack(">I", 5)
    signed = b"\x7fELF module" + b"PKCS7" + bytes(8) + length + b"~Module signature appended~\n"
    assert initrd.unsigned(signed) == b"\x7fELF module"
    assert initrd.unsigned(b"\x7fELF module") == b"\x7fELF module"


def test_kernel_is_unpacked() -> None:
    payload = lzma.compress(b"\x7fELF kernel")
    image = bytearray(512 * 3 + 16)
    image[0x1F1] = 2  # sectors of set-up code after the first
    image[0x248:0x250] = struct.pack("<II", 16, len(payload))
    assert kernel.unpack_image(bytes(image) + payload + b"rest") == b"\x7fELF kernel"
