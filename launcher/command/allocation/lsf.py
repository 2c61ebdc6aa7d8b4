"""The hosts and slots of a job of LSF.

On machines with IBM's CSM, the first host is the one that the job's script runs on. It is no
compute host, and gets no rank.
Floor: launcher/command/allocation. Thread: any.
"""

from collections.abc import Mapping

from rdmacoll.launcher.base.hosts import Host, HostError, checked_host

from .host_list_file import Read
from .pbs import count_lines

SAID_CHARACTERS = 200  # of a value, in an error


def job(environ: Mapping[str, str]) -> str | None:
    number = environ.get("LSB_JOBID")
    return f"LSF job {number}" if number else None


def hosts(environ: Mapping[str, str], read: Read) -> list[Host]:
    pairs, path = environ.get("LSB_MCPU_HOSTS"), environ.get("LSB_DJOB_HOSTFILE")
    if pairs:
        listed, where = _pairs(pairs), f"LSB_MCPU_HOSTS={pairs[:SAID_CHARACTERS]}"
    elif path:
        where = f"LSB_DJOB_HOSTFILE {path}"
        listed = count_lines(read(path, "LSB_DJOB_HOSTFILE"), where)
    else:
        raise HostError("LSB_MCPU_HOSTS: is not set, though LSB_JOBID is; name the hosts with -H")
    if not environ.get("CSM_ALLOCATION_ID"):
        return listed
    if len(listed) == 1:
        raise HostError(f"{where}: names the launch host only, and no host for ranks")
    return listed[1:]


def _pairs(text: str) -> list[Host]:
    """`hostA 2 hostB 4`."""
    words, where = text.split(), f"LSB_MCPU_HOSTS={text[:SAID_CHARACTERS]}"
    if not words or len(words) % 2:
        raise HostError(
            f"{where}: is no list of hosts, each with a number of slots; is it cut off?"
        )
    listed = []
    for name, slots in zip(words[::2], words[1::2], strict=True):
        if not (slots.isascii() and slots.isdecimal() and len(slots) <= 6 and int(slots)):
            raise HostError(f"{where}: {slots[:40]!r} is no number of slots for {name[:40]!r}")
        listed.append(checked_host(name, int(slots), where))
    return listed
