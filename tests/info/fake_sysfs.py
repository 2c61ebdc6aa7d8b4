"""A made-up /sys with RDMA devices, as the kernel lays it out.

Floor: tests.
"""

from pathlib import Path

NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


def write(folder: Path, **attributes: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in attributes.items():
        (folder / name).write_text(value + "\n")


def add_port(
    device: Path,
    number: int = 1,
    link_layer: str = "Ethernet",
    state: str = "4: ACTIVE",
    gids: tuple[tuple[str, str, str], ...] = (),
) -> None:
    """A GID is its address, type and network interface; an empty entry has neither of the latter.

    (The kernel's types and interfaces of empty entries are files that cannot be read.)
    """
    port = device / f"ports/{number}"
    write(port, link_layer=link_layer, state=state, rate="100 Gb/sec (4X EDR)")
    for index, (address, gid_type, netdev) in enumerate(gids):
        write(port / "gids", **{str(index): address})
        if gid_type:
            write(port / "gid_attrs/types", **{str(index): gid_type})
        if netdev:
            write(port / "gid_attrs/ndevs", **{str(index): netdev})


def add_rxe(sysfs: Path, name: str = "rxe0", state: str = "4: ACTIVE") -> None:
    device = sysfs / "class/infiniband" / name
    write(device, node_guid="0200:00ff:fe00:0000", node_desc="rxe", fw_ver="", parent="eth0")
    add_port(
        device,
        state=state,
        gids=(
            ("fe80:0000:0000:0000:0200:00ff:fe00:0000", "RoCE v2", "eth0"),
            ("0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2", "eth0"),
            (NO_GID, "", ""),
        ),
    )


def add_mlx5(sysfs: Path, name: str = "mlx5_0") -> None:
    """A card with one port of each link layer, on a PCI slot near the second socket."""
    device = sysfs / "class/infiniband" / name
    write(device, node_guid="b859:9f03:00d4:1234", node_desc="node7 mlx5_0", fw_ver="20.35.1012")
    slot, driver = sysfs / "devices/pci0000:80/0000:81:00.0", sysfs / "bus/pci/drivers/mlx5_core"
    write(slot, numa_node="1")
    driver.mkdir(parents=True)
    (slot / "driver").symlink_to(driver)
    (device / "device").symlink_to(slot)
    link_local = "fe80:0000:0000:0000:b859:9f03:00d4:1234"
    add_port(device, 1, "InfiniBand", gids=((link_local, "IB/RoCE v1", ""),))
    add_port(device, 2, "Ethernet", "1: DOWN", gids=((link_local, "IB/RoCE v1", "ens1"),))
