"""The command line of `rdmacoll top`. Pure."""

import argparse

from rdmacoll.base.arguments import seconds

DESCRIPTION = """\
What the ranks of a job do while it runs: the operation that each is in, operations and bytes a
second, the share of the time in them ("busy"), and how much later than the first rank it comes to
them. The job goes on undisturbed. With rdmarun the ranks of the job's other hosts are asked, too.
Ctrl-C ends it. The exit status is 1 if there are no ranks here."""
EPILOG = """\
  rdmacoll top                               # all jobs of yours that have ranks on this host
  rdmacoll top --job $(pgrep -o rdmarun) --every 0.5
  rdmacoll top --once                        # one table, for logs"""


def describe(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--job", type=int, metavar="PID", help="the ranks below this rdmarun")
    parser.add_argument(
        "--every", type=seconds, default=2.0, metavar="S", help="seconds between tables (2)"
    )
    parser.add_argument("--once", action="store_true", help="one table, after --every seconds")
