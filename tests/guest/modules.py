"""Which kernel modules the guest needs, in the order of loading."""

import re
from pathlib import Path

from guest import GuestError

WANTED = [
    *("virtio_mmio", "9pnet_virtio", "9p", "overlay"),  # the machine and its files
    *("ib_uverbs", "rdma_ucm", "crc32_generic", "rdma_rxe"),  # Soft-RoCE
    *("virtio_net", "veth", "bridge", "sch_netem"),  # its wires, and damage to them
]


def load_order(folder: Path) -> list[Path]:
    """Paths of WANTED and of all that they depend on; folder is the package's lib/modules/X."""
    available = {_name(path.stem): path for path in folder.rglob("*.ko")}
    builtin = {
        _name(Path(line).stem) for line in (folder / "modules.builtin").read_text().splitlines()
    }
    order: list[Path] = []
    visited = set(builtin)

    def visit(name: str) -> None:
        if name in visited:
            return
        visited.add(name)
        if name not in available:
            raise GuestError(f"the kernel in {folder} has no module {name}")
        for dependency in _dependencies(available[name].read_bytes()):
            visit(dependency)
        order.append(available[name])

    for name in WANTED:
        visit(_name(name))
    return order


def _name(text: str) -> str:
    """The kernel takes both signs for the same."""
    return text.replace("-", "_")


def _dependencies(module: bytes) -> list[str]:
    """From the strings of the section .modinfo."""
    match = re.search(rb"\0depends=([^\0]*)\0", module)
    return [_name(name) for name in match[1].decode().split(",") if name] if match else []
