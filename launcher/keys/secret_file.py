"""Reads RDMACOLL_SECRET_FILE for rdmarun and its agents, by the rules of csrc/base/secret_file.h.

Floor: launcher/keys. Thread: any.
"""

import os
import stat

from rdmacoll.base.peer_user import same_user_or_root

SECRET_BYTES_MIN, SECRET_BYTES_MAX = 16, 4096
REMEDY = (
    "name a file of random bytes that only its owner can read (head -c 32 /dev/urandom > FILE; "
    "chmod 600 FILE), the same on all hosts, or unset it"
)


class SecretFileError(RuntimeError):
    """Names the variable, the file, what is wrong with it and the remedy."""


def read_secret_file(path: str) -> bytes:
    try:
        return _read(path)
    except (OSError, ValueError) as error:
        raise SecretFileError(f"RDMACOLL_SECRET_FILE='{path}': {error}; {REMEDY}") from None


def _read(path: str) -> bytes:
    if not path:
        raise ValueError("it names no file")
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe must not hang
    with os.fdopen(fd, "rb") as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is not a regular file")
        if not same_user_or_root(about.st_uid):
            raise ValueError(f"it belongs to user {about.st_uid}, neither to this user nor to root")
        if about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ValueError("it is open to others than its owner")
        secret = file.read(SECRET_BYTES_MAX + 1)
    if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        raise ValueError(
            f"it must have {SECRET_BYTES_MIN} bytes at least and {SECRET_BYTES_MAX} at most"
        )
    return secret
