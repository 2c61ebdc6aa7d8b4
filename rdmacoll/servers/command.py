"""`rdmacoll ps status`.

Floor: rdmacoll/servers. Thread: the main one.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from .ask import ask_servers
from .status import JobStatus
from .text import lines


def status_of_host(arguments: argparse.Namespace) -> int:
    """The exit status."""
    found = ask_servers(arguments.timeout)
    if not found.jobs and not found.problems:
        print(
            "rdmacoll ps status: no server was found on this host; look on a host that has one, as "
            "its user and in its container, or give --store",
            file=sys.stderr,
        )
        return 1
    show(found.jobs, arguments.json)
    sys.stdout.flush()  # problems come behind it, also in a file of both
    for problem in found.problems:
        print(f"rdmacoll ps status: {problem}", file=sys.stderr)
    return 1 if found.problems else 0


def show(jobs: Sequence[JobStatus], as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(job) for job in jobs], indent=2))
        return
    for number, job in enumerate(jobs):
        if number > 0:
            print()
        print(*lines(job), sep="\n")
