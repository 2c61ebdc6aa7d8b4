"""Whether /dev/shm has room for the files that MPI makes there. The ranks' memory is elsewhere.

Without room MPI dies of SIGBUS, or of errors that name no remedy.
Floor: launcher/meet. Thread: any.
"""

import os

# Measured with MPICH 5.0 and four agents on a host: 8 MiB are enough, 4 are not.
NEEDED_BYTES = 16 << 20
SHM = "/dev/shm"


def lacks_shm_space(host: str) -> str:
    """What is wrong on this host, with the remedy; empty if nothing is."""
    remedy = f"mount -o remount,rw,size=1g {SHM} (docker run --shm-size 1g)"
    try:
        there = os.statvfs(SHM)
    except OSError as error:
        return f"{SHM} on {host}: {error.strerror}; MPI needs it: mount -t tmpfs tmpfs {SHM}"
    if there.f_flag & os.ST_RDONLY or not os.access(SHM, os.W_OK):
        return f"{SHM} on {host} cannot be written to, and MPI needs it: {remedy}"
    free_bytes = there.f_bavail * there.f_frsize
    if there.f_blocks and free_bytes < NEEDED_BYTES:  # a tmpfs without a limit has no blocks
        return (
            f"{SHM} on {host} has {free_bytes >> 10} KB left, and MPI needs "
            f"{NEEDED_BYTES >> 20} MB: {remedy}"
        )
    return ""
