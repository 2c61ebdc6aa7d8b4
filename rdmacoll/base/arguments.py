"""Types of options that several commands have.

Floor: rdmacoll/base. Thread: any.
"""

import argparse

LONGEST_TIMEOUT_S = 1e6  # twelve days; the kernel cannot wait much longer


def seconds(text: str) -> float:
    """A time to wait."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= LONGEST_TIMEOUT_S:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of seconds above 0 and up to {LONGEST_TIMEOUT_S:.0f}"
        )
    return value
