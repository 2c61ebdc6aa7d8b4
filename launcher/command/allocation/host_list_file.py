"""Reads a file that lists hosts: the user's hostfile, or one of a batch system.

Floor: launcher/command/allocation. Thread: any.
"""

from collections.abc import Callable

from rdmacoll.launcher.base.hosts import HostError

LIMIT_BYTES = 16 << 20

# (path, what named it) -> the text; HostError if there is none.
Read = Callable[[str, str], str]


def read_host_list(path: str, named_by: str) -> str:
    """named_by: the option or variable whose value the path is."""
    where = f"{named_by} {path}"
    try:
        with open(path, "rb") as file:
            data = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise HostError(f"{where}: {error.strerror}") from None
    if len(data) > LIMIT_BYTES:
        raise HostError(f"{where}: is larger than {LIMIT_BYTES >> 20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise HostError(f"{where}, line {line}: is not UTF-8 text") from None
