"""What runs in the process that imports for --preload; and what the agent must know to start it.

Floor: launcher/preload.
"""

from pathlib import Path
from typing import Final

FOLDER: Final = str(Path(__file__).parent)  # python's start-up finds the hook by it
# The descriptor of the socket to the agent, filled up with blanks: a rank's own variables are to
# be seen in /proc/PID/environ, as those of any process, and they are written to where this was.
ROOM: Final = "RDMACOLL_PRELOAD"
ROOM_BYTES: Final = 4096  # with its name
MESSAGE_BYTES: Final = 1 << 20
