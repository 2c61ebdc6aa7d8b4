"""The command line of `rdmacoll debug`. Pure."""

import argparse
from pathlib import Path

from rdmacoll.base.arguments import seconds

DESCRIPTION = "What the ranks of a job are doing, when it hangs or has failed."
DUMP = """\
Asks the ranks on this host what they have in flight and what they did last, and says who waits in
what, who has not called it and who does not answer. With rdmarun the ranks of the job's other hosts
are asked, too. The job goes on undisturbed. The exit status is 1 if there are no ranks here, or a
rank or a host did not answer."""
SHOW = """\
The same of files: those that ranks wrote to RDMACOLL_DUMP_DIR when a group failed or on SIGUSR2,
and those of `rdmacoll debug dump --out`, of any number of hosts."""
EPILOG = """\
  rdmacoll debug dump                        # all jobs of yours that have ranks on this host
  rdmacoll debug dump --job $(pgrep -o rdmarun)
  rdmacoll debug dump --out DIR              # under torchrun on every host, then debug show DIR
  rdmacoll debug dump --torch DIR && torchfrtrace DIR
  rdmacoll debug dump --timeline trace.json  # open it in ui.perfetto.dev"""


def describe(parser: argparse.ArgumentParser) -> None:
    parser.description = DESCRIPTION
    commands = parser.add_subparsers(dest="what", required=True, metavar="command")
    dump = commands.add_parser(
        "dump",
        help="ask the ranks of a job",
        description=DUMP,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = dump.add_mutually_exclusive_group()
    which.add_argument("--job", type=int, metavar="PID", help="the ranks below this rdmarun")
    which.add_argument("--pid", type=int, action="append", help="this rank; may be repeated")
    dump.add_argument("--out", type=Path, metavar="DIR", help="keep the answers there")
    dump.add_argument(
        "--seconds", type=seconds, default=5.0, help="the longest wait for an answer (default 5)"
    )
    show = commands.add_parser("show", help="read files", description=SHOW)
    show.add_argument("folder", type=Path, metavar="DIR")
    for command in (dump, show):
        command.add_argument(
            "--torch", type=Path, metavar="DIR", help="write there what torchfrtrace reads"
        )
        command.add_argument(
            "--timeline", type=Path, metavar="FILE", help="write a trace for ui.perfetto.dev"
        )
