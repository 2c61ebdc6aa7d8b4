"""The hosts and slots of a job of PBS: Torque, OpenPBS, PBS Professional.

Its file has a line per slot. In PBS Professional these are the mpiprocs of each chunk.
Floor: launcher/command/allocation. Thread: any.
"""

from collections import Counter
from collections.abc import Mapping

from rdmacoll.launcher.base.hosts import Host, HostError, checked_host

from .host_list_file import Read


def job(environ: Mapping[str, str]) -> str | None:
    number = environ.get("PBS_JOBID")
    return f"PBS job {number}" if number else None


def hosts(environ: Mapping[str, str], read: Read) -> list[Host]:
    path = environ.get("PBS_NODEFILE")
    if not path:
        raise HostError("PBS_NODEFILE: is not set, though PBS_JOBID is; name the hosts with -H")
    return count_lines(read(path, "PBS_NODEFILE"), f"PBS_NODEFILE {path}")


def count_lines(text: str, where: str) -> list[Host]:
    """Each host with as many slots as there are lines of it, in the order of their first ones."""
    counts = Counter(line.strip() for line in text.splitlines() if line.strip())
    if not counts:
        raise HostError(f"{where}: names no host; a line is the name of one")
    return [checked_host(name, count, where) for name, count in counts.items()]
