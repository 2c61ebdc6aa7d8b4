"""The command line: python tests/guest [options] [COMMAND]."""

import argparse
import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from guest import GuestError, boot

DESCRIPTION = """\
Runs COMMAND in a throw-away QEMU guest that has RDMA devices (Soft-RoCE) and sees this machine's
files. It may write anywhere; what it writes is gone afterwards, but for what lies in
build/guest/share. Without COMMAND: a shell, which ends with exit or Ctrl-D.
"""
EPILOG = """\
COMMAND is one line of bash, or a program and its arguments. It runs as root in the repository, and
its output and status are ours; 124 says that it did not end in time, 125 that the guest failed.

  python tests/guest ibv_devinfo
  python tests/guest --devices 2 'ib_write_lat -d rxe1 & sleep 1; ib_write_lat -d rxe2 10.4.0.1'
  python tests/guest --guests 2 'ssh host2 hostname'

The guest takes CI and all RDMACOLL_* from this environment. See docs/SOFTROCE.md.
"""
MIN_MEMORY_MIB = 512


def parse(arguments: list[str]) -> tuple[boot.Settings, str | None]:
    """The settings and the line of shell to run; None: a shell."""
    default = boot.Settings()
    parser = argparse.ArgumentParser(
        prog="python tests/guest",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    layout = parser.add_mutually_exclusive_group()
    layout.add_argument(
        "--devices",
        type=int,
        default=default.devices,
        metavar="N",
        help="1: rxe0 on lo; more: rxe1 to rxeN, each on a wire of its own, x1 to xN with "
        "addresses 10.4.0.1 to .N, which netem or a link down acts on (%(default)s)",
    )
    layout.add_argument(
        "--guests",
        type=int,
        choices=(1, 2),
        default=default.guests,
        help="2: hosts host1 and host2 on one link, each with rxe0 on its eth0 (10.7.0.1, .2) and "
        "an sshd; COMMAND runs on host1 (%(default)s)",
    )
    add("--cpus", type=int, default=default.cpus, metavar="N", help="per guest (%(default)s)")
    add(
        "--memory",
        type=int,
        default=default.memory_mib,
        metavar="MIB",
        help="per guest; what it writes to files counts (%(default)s)",
    )
    add(
        "--timeout",
        type=float,
        default=default.timeout_s,
        metavar="S",
        help="seconds that COMMAND may take, boot apart (%(default)s)",
    )
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    given = parser.parse_args(arguments)
    if not 1 <= given.devices <= 9:
        parser.error(f"--devices {given.devices}: 1 to 9")
    if given.cpus < 1 or given.memory < MIN_MEMORY_MIB or given.timeout <= 0:
        parser.error(f"--cpus of at least 1, --memory of {MIN_MEMORY_MIB}, --timeout above 0")
    words = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not words and not (sys.stdin.isatty() and sys.stdout.isatty()):
        parser.error("a shell needs a terminal; give a COMMAND")
    settings = boot.Settings(given.guests, given.devices, given.cpus, given.memory, given.timeout)
    return settings, (words[0] if len(words) == 1 else shlex.join(words)) if words else None


def main() -> int:
    try:
        return boot.run(*parse(sys.argv[1:]))
    except GuestError as error:
        print(f"guest: {error}", file=sys.stderr)
        return 124 if isinstance(error, boot.Timeout) else 125
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
