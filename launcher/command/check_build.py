"""rdmarun --check-build: what is compiled in, what starts the ranks, what this machine offers.

Laid out as horovodrun's, whose users know it. Floor: launcher/command. Thread: any.
"""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass

from rdmacoll.info.build import ask_build
from rdmacoll.info.listing import list_devices
from rdmacoll.info.memlock import Memlock

from .mpi_find import MpiError, find_mpi

WITHOUT_MPI = "jobs on one host do without, jobs on several cannot start"


@dataclass(frozen=True)
class Item:
    name: str
    there: bool
    detail: str = ""  # which one, or why not


def check_build(version: str) -> int:
    """Prints it; the status is 0 if jobs can run here, 1 if something that every job needs is not.

    No job needs a certain transport or device, as shared memory is always there; nor MPI, on one
    host.
    """
    torch, transports, chosen = _engine()
    sections = {
        "Available Frameworks": [torch],
        "Available Controllers": [_mpi(), _mpi4py()],
        "Available Transports": transports,
        "This Machine": [*_devices(), chosen, _memlock()],
    }
    print(f"rdmacoll v{version}:")
    for title, items in sections.items():
        print(f"\n{title}:")
        for item in items:
            mark = "X" if item.there else " "
            print(f"    [{mark}] {item.name}" + (f": {item.detail}" if item.detail else ""))
    return 0 if torch.there else 1


def _mpi() -> Item:
    try:
        mpi = find_mpi()
    except MpiError as error:
        return Item("MPI", False, f"{error}; {WITHOUT_MPI}")
    return Item("MPI", True, f"{mpi.version} ({mpi.mpiexec})")


def _mpi4py() -> Item:
    """Its version and the library it loads; the library is not initialised."""
    try:
        mpi4py = importlib.import_module("mpi4py")
        mpi4py.rc.initialize = False
        library = importlib.import_module("mpi4py.MPI").Get_library_version()
    except (ImportError, RuntimeError) as error:
        return Item("mpi4py", False, f"{error}; {WITHOUT_MPI}")
    return Item("mpi4py", True, f"{mpi4py.__version__} with {' '.join(library.split()[:3])}")


def _engine() -> tuple[Item, list[Item], Item]:
    """PyTorch with the extension in it, its transports, and the device that verbs would use."""
    chosen = "RDMA device of LOCAL_RANK 0"
    try:
        build = ask_build(local_ranks=1)
    except ImportError as error:
        return Item("PyTorch", False, str(error)), [], Item(chosen, False)
    torch = Item("PyTorch", True, f"{build.torch}, built for {build.facts['built for torch']}")
    transports = [Item(name, True) for name in build.transports]
    choice = build.choices[0]
    return torch, transports, Item(chosen, bool(choice.device), choice.device or choice.error)


def _devices() -> Iterator[Item]:
    for device in list_devices().devices:
        active = any(port.state == "ACTIVE" for port in device.ports)
        states = [f"port {port.number} {port.state}" for port in device.ports]
        detail = ", ".join(filter(None, [device.driver, *states, device.problem]))
        yield Item(device.name, active and not device.problem, detail)


def _memlock() -> Item:
    memlock = Memlock.of_this_process()
    detail = f"{memlock}: {memlock.remedy}" if memlock.remedy else str(memlock)
    return Item("Locked memory", memlock.suffices, " ".join(detail.split()))
