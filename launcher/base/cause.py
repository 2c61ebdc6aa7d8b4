"""Why a job ends before all its ranks have. Values, without MPI.

Floor: launcher/base. Thread: any.
"""

from dataclasses import dataclass
from enum import IntEnum


class Why(IntEnum):
    """Why a job ends before all its ranks have."""

    RUNNING = 0
    FAILED = 1  # a rank; status as subprocess has it
    STOPPED = 2  # by a signal to rdmarun; status is the signal
    ABANDONED = 3  # rdmarun is gone
    LATE = 4  # not all ranks came to the first exchange within --start-timeout
    ABSENT = 5  # a rank ended that others wait for in an exchange; status likewise
    NO_STORE = 6  # the process that hosts the TCPStore ended
    NO_START = 7  # the ranks of a host could not be started
    HOST_LOST = 8  # a host whose ranks the job cannot do without; rank is its first


@dataclass(frozen=True)
class Cause:
    why: Why = Why.RUNNING
    rank: int = -1  # the one at fault, or the first of the host
    status: int = 0
    time_ns: int = 0

    @property
    def of_a_rank(self) -> bool:
        """A rank is at fault: to start all of them again may help."""
        return self.why in (Why.FAILED, Why.ABSENT)
