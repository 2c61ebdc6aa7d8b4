"""A server of `rdmarun --servers`: it is there until it is told to end.

Floor: rdmacoll/ps. Thread: the main one.
"""

import signal
import sys


def main() -> int:
    """The status of the process."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.sigwait({signal.SIGTERM})
    return 0


if __name__ == "__main__":
    sys.exit(main())
