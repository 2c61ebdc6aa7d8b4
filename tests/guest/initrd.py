"""What the guest's kernel starts with: busybox, the modules, and `init` as process 1."""

import shutil
from pathlib import Path

from guest import GuestError, cpio, kernel

SIGNATURE = b"~Module signature appended~\n"
SIGNATURE_HEAD = 12  # struct module_signature; its last four bytes are the signature's length


def build() -> bytes:
    """Made for each boot: that is quicker than knowing when it is out of date."""
    busybox = shutil.which("busybox")
    if busybox is None:
        raise GuestError("no busybox here: run .ci/system-packages-rdma")
    archive = cpio.Archive()
    for folder in ("bin", "dev", "proc", "sys", "modules", "host", "share", "layer", "root"):
        archive.folder(folder)
    archive.character_device("dev/console", 5, 1)
    archive.file("bin/busybox", Path(busybox).read_bytes(), 0o755)
    archive.link("bin/sh", "busybox")
    for module in sorted(kernel.MODULES.iterdir()):
        archive.file(f"modules/{module.name}", unsigned(module.read_bytes()))
    archive.file("init", (Path(__file__).parent / "init").read_bytes(), 0o755)
    return archive.finish()


def unsigned(module: bytes) -> bytes:
    """Without its signature: checking one is slow on an emulated processor, and not demanded."""
    if not module.endswith(SIGNATURE):
        return module
    end = len(module) - len(SIGNATURE)
    length = int.from_bytes(module[end - 4 : end], "big")
    return module[: end - SIGNATURE_HEAD - length]
