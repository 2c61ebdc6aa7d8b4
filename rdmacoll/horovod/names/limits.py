"""How long things may take, and the variables that say so.

Floor: rdmacoll/horovod/names. Thread: any.
"""

import datetime
import os

# How long an operation may take once all ranks have submitted it: torch's own limit.
TIMEOUT = datetime.timedelta(minutes=30)
MOST_S = 1e9  # what is longer is a mistake, and more than some clocks have


def read_seconds(name: str, usual: float) -> float:
    """Of an environment variable. Raises ValueError for one that is no time.

    0 is never, where a time is one after which something is done.
    """
    text = os.environ.get(name, "")
    try:
        seconds = float(text) if text else usual
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MOST_S:
        raise ValueError(f"{name}={text!r}: give seconds from 0 to {MOST_S:g}")
    return seconds


def read_switch(name: str) -> bool:
    """Of an environment variable. Raises ValueError for one that is neither on nor off."""
    text = os.environ.get(name, "")
    if text not in ("", "0", "1"):
        raise ValueError(f"{name}={text!r}: give 1 for yes, or 0")
    return text == "1"
