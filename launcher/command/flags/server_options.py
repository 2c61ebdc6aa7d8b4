"""The options about servers and the mount of their files, and on which hosts servers are. Pure.

Floor: launcher/command/flags. Thread: any.
"""

import argparse
from collections.abc import Callable, Sequence

from rdmacoll.launcher.base.hosts import Host

MOST_SERVERS = 1024  # of a job


def add_server_options(
    parser: argparse.ArgumentParser,
    whole: Callable[[str], int],
    size: Callable[[str], int],
    folder: Callable[[str], str],
) -> None:
    """whole, size, folder: read a number, a size in bytes, and the name of a folder."""
    add = parser.add_argument
    add(
        "--servers",
        type=whole,
        default=0,
        metavar="N",
        help="start N parameter servers (rdmacoll.ps) besides the ranks, on the hosts in turn; "
        "they end with the job (default: 0)",
    )
    add(
        "--servers-on",
        metavar="HOST,...",
        help="the hosts of the job that have the servers, in turn (default: all)",
    )
    add(
        "--server-restarts",
        type=whole,
        metavar="N",
        help="start a server that ends before the job does again, each so many times; the job goes "
        "on without one that has had them (default: 0)",
    )
    add(
        "--server-memory",
        type=size,
        metavar="SIZE",
        help="how much memory the tables of each server may take, 8G or 512M (default: the "
        "server's own); sets RDMACOLL_SERVER_MEMORY",
    )
    add(
        "--server-replicas",
        type=int,
        choices=(1, 2),
        help="how many servers keep each part of the tables; with 1 a lost server takes its part "
        "along (default: 2)",
    )
    add(
        "--mount",
        type=folder,
        metavar="DIR",
        help="show the files at the servers (rdma://) in this folder of each host, which is empty "
        "or not there yet, for as long as the job runs; ranks see it in RDMACOLL_MOUNT",
    )


def place_servers(args: argparse.Namespace, hosts: Sequence[Host]) -> list[int]:
    """The index of each server's host. ValueError if the options are wrong together."""
    if args.servers > MOST_SERVERS:
        raise ValueError(f"--servers {args.servers}: a job can have {MOST_SERVERS} servers at most")
    if args.servers == 0:
        for option in "servers_on", "server_restarts", "server_memory", "server_replicas", "mount":
            if getattr(args, option) is not None:
                raise ValueError(
                    f"--{option.replace('_', '-')} without servers: say how many, with --servers N"
                )
        return []
    if args.server_memory == 0:
        raise ValueError("--server-memory 0: a server needs memory; give 8G or 512M")
    where = range(len(hosts)) if args.servers_on is None else _named(args.servers_on, hosts)
    return [where[server % len(where)] for server in range(args.servers)]


def _named(text: str, hosts: Sequence[Host]) -> list[int]:
    found = []
    for name in text.split(","):
        of_name = [index for index, host in enumerate(hosts) if host.name == name]
        if not of_name:
            names = ", ".join(dict.fromkeys(host.name for host in hosts))
            raise ValueError(
                f"--servers-on {text}: {name!r} is no host of this job, whose ranks are on {names}"
            )
        found += of_name
    return found
