"""The rate of this machine's time stamp counter, which is the guest's, too.

QEMU's microvm has no other clock that Linux could measure it by, but the PIT, and that measurement
fails when the host is busy: the guest is told.
"""

import ctypes
import mmap
import time
from collections.abc import Callable

READ_TSC = bytes.fromhex(
    "0f31"  # rdtsc
    "48c1e220"  # shl rdx, 32
    "4809d0"  # or rax, rdx
    "c3"  # ret
)
WINDOW_S = 0.03
ATTEMPTS = 100  # at reading both clocks at once, on a machine that interrupts us


def rate_khz() -> int:
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(READ_TSC)
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    read_tsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(address)
    begin_ns, begin_ticks = _both_clocks(read_tsc)
    time.sleep(WINDOW_S)
    end_ns, end_ticks = _both_clocks(read_tsc)
    return (end_ticks - begin_ticks) * 1_000_000 // (end_ns - begin_ns)


def _both_clocks(read_tsc: Callable[[], int]) -> tuple[int, int]:
    """Nanoseconds and ticks of one moment: those between which the least time went by."""

    def attempt() -> tuple[int, int, int]:
        before_ns, ticks, after_ns = time.monotonic_ns(), read_tsc(), time.monotonic_ns()
        return after_ns - before_ns, before_ns, ticks

    _, moment_ns, ticks = min(attempt() for _ in range(ATTEMPTS))
    return moment_ns, ticks
