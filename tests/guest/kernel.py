"""The guest's kernel: Debian's own, fetched and unpacked but not installed; kept in build/guest.

The generic flavour of Linux 6.1: the cloud flavour has neither rxe nor 9p.
"""

import fcntl
import lzma
import os
import re
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from guest import BUILD, GuestError, modules

PACKAGES = r"^linux-image-6[.]1[.]0-[0-9]+-amd64$"
VMLINUX = BUILD / "kernel/vmlinux"
MODULES = BUILD / "kernel/modules"  # named NNN-name.ko in the order of loading
WANTED = BUILD / "kernel/wanted"  # the list that MODULES was made from
DOWNLOAD_LIMIT_S = 600


def ensure() -> None:
    """Makes VMLINUX and MODULES unless they are there."""
    BUILD.mkdir(parents=True, exist_ok=True)
    wanted = " ".join(modules.WANTED)
    with open(BUILD / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if WANTED.exists() and WANTED.read_text() == wanted:
            return
        with tempfile.TemporaryDirectory(dir=BUILD) as scratch:
            package = _fetch(Path(scratch))
            _run("dpkg-deb", "-x", str(package), f"{scratch}/unpacked", where=scratch)
            made = Path(scratch, "made")
            _collect(Path(scratch, "unpacked"), made)
            (made / WANTED.name).write_text(wanted)
            shutil.rmtree(VMLINUX.parent, ignore_errors=True)
            made.rename(VMLINUX.parent)


def _collect(unpacked: Path, made: Path) -> None:
    """Keeps what a guest boots with: about a tenth of the package."""
    (image,) = unpacked.glob("boot/vmlinuz-*")
    (folder,) = unpacked.glob("lib/modules/*")
    (made / MODULES.name).mkdir(parents=True)
    (made / VMLINUX.name).write_bytes(unpack_image(image.read_bytes()))
    for number, path in enumerate(modules.load_order(folder)):
        shutil.copy(path, made / MODULES.name / f"{number:03}-{path.name}")


def unpack_image(image: bytes) -> bytes:
    """The ELF file in a bzImage. QEMU can enter it directly, which spares the emulated processor
    the unpacking. The offsets are those of Documentation/x86/boot.rst."""
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (1 + setup_sectors) * 512 + offset
    vmlinux = lzma.LZMADecompressor().decompress(image[start : start + length])
    if not vmlinux.startswith(b"\x7fELF"):
        raise GuestError("the kernel's image holds no ELF file")
    return vmlinux


def _fetch(folder: Path) -> Path:
    """The newest package that apt knows. Old builds vanish from mirrors, so lists that are out of
    date, as in an image of a machine, are read anew where that is allowed."""
    package = _download(folder)
    if package is None and os.geteuid() == 0:
        _run("apt-get", "update", where=folder)
        package = _download(folder)
    if package is None:
        raise GuestError(
            f"apt has no package {PACKAGES} to download: apt-get update as root, then again "
            "(Debian 12 is needed)"
        )
    return package


def _download(folder: Path) -> Path | None:
    found = _run("apt-cache", "search", "--names-only", PACKAGES, where=folder).split("\n")
    names = [line.split()[0] for line in found if line]
    if not names:
        return None
    newest = max(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])
    try:
        _run("apt-get", "download", newest, where=folder)
    except GuestError:
        return None
    return next(folder.glob("*.deb"))


def _run(*command: str, where: Path | str) -> str:
    try:
        done = subprocess.run(
            command, cwd=where, capture_output=True, text=True, timeout=DOWNLOAD_LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GuestError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise GuestError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
