"""How a process runs another module of this package.

Floor: rdmacoll/base. Thread: any.
"""

import sys


def own_module(name: str) -> list[str]:
    """The command that runs main() of a module, named in full.

    Not `python -m`: that looks in the current folder first, where a checkout may lie.
    """
    path = "sys.path = [folder for folder in sys.path if folder]"
    run = f"from {name} import main; sys.exit(main())"
    return [sys.executable, "-c", f"import sys; {path}; {run}"]
