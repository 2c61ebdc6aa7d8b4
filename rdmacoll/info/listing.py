"""The RDMA devices of this machine: asked of libibverbs where pyverbs is, else of the kernel."""

from dataclasses import dataclass
from pathlib import Path

from .advice import device_advice
from .device import Device
from .sysfs import SYSFS, kernel_devices
from .with_pyverbs import as_libibverbs_sees, load_pyverbs


@dataclass(frozen=True)
class Listing:
    source: str  # "pyverbs", or "sysfs" and why not pyverbs
    devices: list[Device]
    advice: list[str]  # what is missing here, and how to get it


def list_devices(sysfs: Path = SYSFS, dev: Path = Path("/dev")) -> Listing:
    devices = kernel_devices(sysfs)
    try:
        devices, source = as_libibverbs_sees(load_pyverbs(), devices), "pyverbs"
    except ImportError as error:
        source = f"sysfs; pyverbs is not used: {error}"
    return Listing(source, devices, device_advice(devices, dev))
