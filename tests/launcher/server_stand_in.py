"""Lets the servers of a job run a test's own program, server.py beside this file. A test copies it
as sitecustomize.py into a folder in PYTHONPATH, so every python of the job runs it at its start.

Floor: tests.
"""

import os
import sys
import types

if "RDMACOLL_SERVER" in os.environ:

    def _main() -> None:
        path = os.path.join(os.path.dirname(__file__), "server.py")
        with open(path) as file:
            program = compile(file.read(), path, "exec")
        exec(program, {"__name__": "__main__"})

    _module = types.ModuleType("rdmacoll.ps.serve")
    _module.__dict__["main"] = _main
    sys.modules["rdmacoll.ps.serve"] = _module
