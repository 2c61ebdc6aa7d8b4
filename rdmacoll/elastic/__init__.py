"""Training that goes on from the last commit when ranks are lost or come back.

Under `rdmarun --elastic`; docs/ELASTIC.md shows it.
"""

from .joiner import Finished
from .loop import run
from .state import State

__all__ = ["Finished", "State", "run"]
