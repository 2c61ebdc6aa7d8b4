"""`rdmacoll ps serve`: waits for the job's Store and becomes the server that rdmarun would start,
with the variables that rdmarun would give it.

Floor: rdmacoll/servers. Thread: the main one.
"""

import argparse
import os
import sys

from rdmacoll.base.own_module import own_module

from .options import NO_RUN_ID, Address, address
from .reaching import NoStore, wait_for_store

SERVER = "rdmacoll.ps.serve"
# Of a rank or a server that this process is not.
OTHERS = ("RANK", "LOCAL_RANK", "RDMACOLL_AGENT", "RDMACOLL_SERVER_START")


class Refused(Exception):
    """The message says why, and what to do."""


def serve(arguments: argparse.Namespace) -> int:
    """Returns only where no server is started: the exit status."""
    try:
        if arguments.number >= arguments.servers:
            raise Refused(
                f"--number {arguments.number} of --servers {arguments.servers}: numbers are 0 to "
                f"{arguments.servers - 1}"
            )
        store = arguments.store or _store_of_ranks(os.environ)
        wait_for_store(store, arguments.timeout)
    except (Refused, NoStore) as error:
        print(f"rdmacoll ps serve: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("rdmacoll ps serve: interrupted before the server has started", file=sys.stderr)
        return 130
    command = own_module(SERVER)
    os.execve(command[0], command, _environment(arguments, store))


def _store_of_ranks(environ: "os._Environ[str]") -> Address:
    host, port = environ.get("MASTER_ADDR", ""), environ.get("MASTER_PORT", "")
    try:
        return address(f"[{host}]:{port}")
    except argparse.ArgumentTypeError:
        raise Refused(
            f"MASTER_ADDR={host!r} and MASTER_PORT={port!r} name no Store: give --store HOST:PORT"
        ) from None


def _environment(arguments: argparse.Namespace, store: Address) -> dict[str, str]:
    users = {name: value for name, value in os.environ.items() if name not in OTHERS}
    own: dict[str, object] = {
        "MASTER_ADDR": store.host,
        "MASTER_PORT": store.port,
        "TORCHELASTIC_RUN_ID": arguments.rdzv_id or users.get("TORCHELASTIC_RUN_ID", NO_RUN_ID),
        "RDMACOLL_SERVER": arguments.number,
        "RDMACOLL_SERVERS": arguments.servers,
        "RDMACOLL_SERVER_REPLICAS": arguments.replicas,
    }
    if arguments.memory is not None:
        own["RDMACOLL_SERVER_MEMORY"] = arguments.memory
    return users | {name: str(value) for name, value in own.items()}
