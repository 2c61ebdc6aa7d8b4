"""The limit on locked memory, which registering memory with a device counts against."""

import resource
from dataclasses import dataclass
from pathlib import Path

CAP_IPC_LOCK = 14  # <linux/capability.h>: the limit does not hold for who has it
PLENTY_BYTES = 1 << 30  # dozens of groups

REMEDY = (
    "registering memory may fail. Put these two lines into /etc/security/limits.conf and log in "
    "again:\n"
    "    * soft memlock unlimited\n"
    "    * hard memlock unlimited\n"
    "docker: --ulimit memlock=-1; systemd: LimitMEMLOCK=infinity; "
    "Slurm: PropagateResourceLimitsExcept=MEMLOCK"
)


@dataclass(frozen=True)
class Memlock:
    limit_bytes: int | None  # None: unlimited
    cap_ipc_lock: bool

    @staticmethod
    def of_this_process() -> "Memlock":
        soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
        return Memlock(None if soft == resource.RLIM_INFINITY else soft, has_cap_ipc_lock())

    @property
    def suffices(self) -> bool:
        return self.limit_bytes is None or self.cap_ipc_lock or self.limit_bytes >= PLENTY_BYTES

    @property
    def remedy(self) -> str:
        """Empty where none is needed."""
        return "" if self.suffices else REMEDY

    def __str__(self) -> str:
        if self.limit_bytes is None:
            return "unlimited"
        limit = f"{self.limit_bytes >> 10} KiB"
        return f"{limit}, which CAP_IPC_LOCK lifts" if self.cap_ipc_lock else limit


def has_cap_ipc_lock(proc: Path = Path("/proc/self")) -> bool:
    """It counts in the first user namespace only: root of a rootless container has not got it."""
    if (proc / "uid_map").read_text().split() != ["0", "0", str(2**32 - 1)]:
        return False
    fields = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    return bool(int(fields["CapEff"], 16) >> CAP_IPC_LOCK & 1)
