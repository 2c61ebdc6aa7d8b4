"""The command `rdmacoll`: what is installed here, and what this machine offers it."""

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="rdmacoll", description='A torch.distributed backend named "rdma" for CPU tensors.'
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    info = commands.add_parser("info", help="what is installed, and what this machine offers")
    info.set_defaults(run=_info)
    arguments = parser.parse_args()
    status: int = arguments.run()
    return status


def _info() -> int:
    rows, loads = list(_installed()), True
    try:
        from rdmacoll import build_info

        rows += build_info().items()
    except ImportError as error:
        rows.append(("rdmacoll", str(error)))
        loads = False
    rows += [*_machine(), *_settings()]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
    return 0 if loads else 1


def _installed() -> Iterator[tuple[str, str]]:
    import torch

    yield "python", platform.python_version()
    yield "torch", torch.__version__


def _machine() -> Iterator[tuple[str, str]]:
    yield "kernel", platform.release()
    yield "cores", str(len(os.sched_getaffinity(0)))
    devices = sorted(path.name for path in Path("/sys/class/infiniband").glob("*"))
    yield "RDMA devices", ", ".join(devices) or "none"


def _settings() -> Iterator[tuple[str, str]]:
    ours = {name: value for name, value in os.environ.items() if name.startswith("RDMACOLL_")}
    if not ours:
        yield "environment", "no RDMACOLL_ variable is set"
    yield from sorted(ours.items())


if __name__ == "__main__":
    sys.exit(main())
