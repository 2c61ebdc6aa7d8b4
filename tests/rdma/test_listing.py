"""What `rdmacoll info` lists of real devices: libibverbs, asked through pyverbs, and the kernel's
sysfs must tell the same.

Floor: tests.
"""

from rdmacoll.info.listing import list_devices
from rdmacoll.info.sysfs import kernel_devices


def test_pyverbs_and_sysfs_agree(devices: list[str]) -> None:
    listing, kernel = list_devices(), kernel_devices()
    assert (listing.source, listing.advice) == ("pyverbs", [])
    assert [device.name for device in listing.devices] == devices
    for asked, read in zip(listing.devices, kernel, strict=True):
        assert asked.problem == ""
        assert asked.node_guid == read.node_guid != ""
        for ours, theirs in zip(asked.ports, read.ports, strict=True):
            assert (ours.state, ours.link_layer) == (theirs.state, theirs.link_layer)
            assert ours.gids == theirs.gids != ()
            assert ours.mtu_bytes is not None
