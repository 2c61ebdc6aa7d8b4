"""QEMU's command line: what the virtual machine is made of. Starts nothing.

The processor is emulated (TCG), so that it works where there is no KVM, as inside most virtual
machines, and is the same everywhere.
"""

from dataclasses import dataclass
from pathlib import Path

from guest import REPOSITORY, kernel

PROGRAM = "qemu-system-x86_64"

# Without ERMS the kernel and libc copy with other instructions than `rep movsb`, which is slow to
# emulate: an RDMA write costs half.
PROCESSOR = "max,erms=off"

KERNEL_OPTIONS = (
    "console=ttyS0 quiet panic=-1",  # the first panic ends the guest
    "mitigations=off rodata=off",  # protections that cost, and protect nothing here
    "cryptomgr.notests",  # more than half of the instructions of a boot
    "tsc=reliable no_timer_check",  # measurements that a busy host fails
    "random.trust_cpu=on",  # or the boot waits a second for entropy
    "initcall_blacklist=pci_arch_init",  # it complains that there is no PCI
)


@dataclass(frozen=True)
class Machine:
    """One guest as QEMU sees it."""

    host: int  # 1, 2: its number, and its hostname's
    cpus: int
    memory_mib: int
    tsc_khz: int
    share: Path  # the host's one folder that the guest may write, at the same path in there
    run: str  # the folder in share that `up` reads and writes
    wire: int | None  # a descriptor: one end of a socket pair that is the link to the other guest
    interactive: bool  # the console is our terminal


def command_line(machine: Machine) -> list[str]:
    folder = machine.share / machine.run
    console = (
        "stdio,id=console,signal=off"
        if machine.interactive
        else f"file,id=console,path={_value(folder / str(machine.host) / 'console')}"
    )
    return [
        *(PROGRAM, "-machine", "microvm", "-accel", "tcg,thread=multi,tb-size=512"),
        *("-cpu", PROCESSOR, "-smp", str(machine.cpus), "-m", str(machine.memory_mib)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-kernel", str(kernel.VMLINUX), "-initrd", str(folder / "initrd")),
        *("-append", _kernel_command_line(machine)),
        *("-chardev", console, "-serial", "chardev:console"),
        *_shared("host", Path("/"), "readonly=on,multidevs=remap"),
        *_shared("share", machine.share, "readonly=off"),
        *_network(machine),
    ]


def _kernel_command_line(machine: Machine) -> str:
    """What the kernel does not know becomes the environment of `init`."""
    return " ".join(
        (
            *KERNEL_OPTIONS,
            f"tsc_early_khz={machine.tsc_khz}",
            f'repository="{REPOSITORY}" share="{machine.share}"',
            f"run={machine.run} host={machine.host}",
        )
    )


def _shared(name: str, path: Path, options: str) -> tuple[str, ...]:
    folder = f"local,id={name},path={_value(path)},security_model=none,{options}"
    return ("-fsdev", folder, "-device", f"virtio-9p-device,fsdev={name},mount_tag={name}")


def _network(machine: Machine) -> tuple[str, ...]:
    if machine.wire is None:
        return ()
    card = f"virtio-net-device,netdev=wire,mac=52:54:00:00:00:{machine.host:02x}"
    return ("-netdev", f"socket,id=wire,fd={machine.wire}", "-device", card)


def _value(path: Path) -> str:
    """In QEMU's options a comma is written twice."""
    return str(path).replace(",", ",,")
