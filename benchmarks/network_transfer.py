"""A tensor to a given place on another host, in C++: beside gRPC, or RPCs over the same transport.

    python benchmarks/network_transfer.py transfer_grpc [reads] [rounds [bytes ...]]
    python benchmarks/network_transfer.py transfer ...

Makes two hosts as namespaces of this machine, as network.py does, and runs the program's pairs
between them, over TCP: docs/BENCHMARK.md, "rdmacoll bench transfer".
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from hosts import StandError
from hosts.stand import Hosts

BUILD = Path(__file__).resolve().parents[1] / "build/cpp"
OVER_TCP = {"RDMACOLL_TRANSPORT": "tcp"}


def main() -> int:
    if len(sys.argv) < 2 or not (BUILD / sys.argv[1]).is_file():
        sys.exit(f"{__doc__}\nThe programs are built in {BUILD}.")
    program, *arguments = sys.argv[1:]
    try:
        with Hosts(2) as hosts:
            ends = [f"{host.keeper.holder}/{host.address}" for host in hosts]
            command = [str(BUILD / program), "between", *ends, *arguments]
            return subprocess.run(command, env={**os.environ, **OVER_TCP}).returncode
    except StandError as error:
        sys.exit(f"no hosts to measure on: {error}")


if __name__ == "__main__":
    sys.exit(main())
