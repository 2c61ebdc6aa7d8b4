"""The hook by which python's start-up becomes the process that imports for --preload.

That process is a python with the command line of a rank, which stops here before it looks at the
script. What is forked here goes on as python would: so it runs scripts, modules and whatever else
python runs, and nothing of this is on its stack.
Floor: launcher/preload. Thread: the main one.
"""

import os
import traceback

try:
    from rdmacoll.launcher.preload.server import serve

    serve()
except BaseException:  # python would go on, and run the script here
    traceback.print_exc()
    os._exit(1)
