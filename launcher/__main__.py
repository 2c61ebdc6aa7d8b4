"""`python -m rdmacoll.launcher` is rdmarun.

Floor: launcher. Thread: the main one.
"""

from .rdmarun import main

main()
