"""The folder on PYTHONPATH by which a python and its children find rdmacoll as `horovod`.

rdmarun --horovod and `python -m rdmacoll.horovod` put it there; what is in it begins with
rdmacoll/horovod/alias/sitecustomize.py.
Floor: rdmacoll/base. Thread: any.
"""

import os
from pathlib import Path
from typing import Final

FOLDER: Final = str(Path(__file__).parents[1] / "horovod" / "alias")


def with_folder(python_path: str | None) -> str:
    """A PYTHONPATH that has the folder once and first, and then what it had before."""
    before = python_path.split(os.pathsep) if python_path else []
    return os.pathsep.join([FOLDER, *(entry for entry in before if entry != FOLDER)])
