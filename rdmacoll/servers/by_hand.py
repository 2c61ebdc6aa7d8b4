"""`rdmacoll ps serve`: waits for the job's Store and becomes the server that rdmarun would start,
with the variables that rdmarun would give it.

Floor: rdmacoll/servers. Thread: the main one.
"""

import argparse
import os
import sys

from rdmacoll.base.own_module import own_module

from .options import JOINS, NO_RUN_ID, Address, store_of_ranks
from .reaching import NoStore, wait_for_store

SERVER = "rdmacoll.ps.serve"
# Of a rank or a server that this process is not.
OTHERS = ("RANK", "LOCAL_RANK", "RDMACOLL_AGENT", "RDMACOLL_SERVER_START")


class Refused(Exception):
    """The message says why, and what to do."""


def serve(arguments: argparse.Namespace) -> int:
    """Returns only where no server is started: the exit status."""
    try:
        _check_which(arguments)
        store = arguments.store or store_of_ranks(os.environ)
        wait_for_store(store, arguments.timeout)
    except (Refused, NoStore, ValueError) as error:
        print(f"rdmacoll ps serve: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("rdmacoll ps serve: interrupted before the server has started", file=sys.stderr)
        return 130
    command = own_module(SERVER)
    os.execve(command[0], command, _environment(arguments, store))


def _check_which(arguments: argparse.Namespace) -> None:
    number, servers = arguments.number, arguments.servers
    if arguments.join:
        if (number, servers, arguments.replicas) != (None, None, None):
            raise Refused("--join stands for --number, --servers and --replicas: leave those out")
        return
    if number is None or servers is None:
        raise Refused("which server is it? Give --number K and --servers N, or --join")
    if number >= servers:
        raise Refused(f"--number {number} of --servers {servers}: numbers are 0 to {servers - 1}")


def _environment(arguments: argparse.Namespace, store: Address) -> dict[str, str]:
    users = {name: value for name, value in os.environ.items() if name not in OTHERS}
    # The Store is gone at the end of each job, of which torch would show hundreds of stack traces.
    users.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    own: dict[str, object] = {
        "MASTER_ADDR": store.host,
        "MASTER_PORT": store.port,
        "RDMACOLL_SERVER": JOINS if arguments.join else arguments.number,
    }
    run_id = arguments.rdzv_id or users.get("TORCHELASTIC_RUN_ID")
    if run_id is not None:  # else one that joins takes what ranks of rdmarun have left in the Store
        own["TORCHELASTIC_RUN_ID"] = run_id
    if not arguments.join:
        own.setdefault("TORCHELASTIC_RUN_ID", NO_RUN_ID)
        own["RDMACOLL_SERVERS"] = arguments.servers
        own["RDMACOLL_SERVER_REPLICAS"] = arguments.replicas or 2
    if arguments.memory is not None:
        own["RDMACOLL_SERVER_MEMORY"] = arguments.memory
    return users | {name: str(value) for name, value in own.items()}
