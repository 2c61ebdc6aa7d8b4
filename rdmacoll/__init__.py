"""rdmacoll: a torch.distributed backend named "rdma" for CPU tensors.

Importing it registers the name and loads nothing else: no torch (the launcher imports it too) and
no extension, which is loaded when the first group is made or one of the names below is used.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

from ._register import register

if TYPE_CHECKING:
    from . import elastic, ops, remote
    from ._C import Options, RdmaBackend
    from .failure import DeadRankError, dead_ranks, shrink_group
    from .memory import empty, in_heap, memory_stats, place_, registered_memory, zeros
    from .placement import trace_placement
    from .process_group import create_process_group
    from .slurm import env_from_slurm

__all__ = [
    "DeadRankError",
    "Options",
    "RdmaBackend",
    "__version__",
    "build_info",
    "create_process_group",
    "dead_ranks",
    "elastic",
    "empty",
    "env_from_slurm",
    "in_heap",
    "memory_stats",
    "ops",
    "place_",
    "registered_memory",
    "remote",
    "shrink_group",
    "trace_placement",
    "zeros",
]
__version__: str

_ELSEWHERE = {
    "DeadRankError": ".failure",
    "create_process_group": ".process_group",
    "dead_ranks": ".failure",
    "env_from_slurm": ".slurm",
    "shrink_group": ".failure",
    "trace_placement": ".placement",
}

# `import torch` calls register() at its end, unless this switches such calls off.
if "torch" in sys.modules or os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "1":
    register()


def build_info() -> dict[str, str]:
    """What the compiled module was built from: versions and sources, by name.

    Any thread. Raises ImportError if the module does not load.
    """
    from .info.build import build_facts

    return build_facts()


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("rdmacoll")
    if name in ("Options", "RdmaBackend"):
        from ._extension import extension

        return getattr(extension(), name)
    if name in ("elastic", "ops", "remote"):
        from importlib import import_module

        return import_module("." + name, __name__)
    if name in __all__:
        from importlib import import_module

        module = _ELSEWHERE.get(name, ".memory")
        return getattr(import_module(module, __name__), name)
    raise AttributeError(f"module 'rdmacoll' has no attribute {name!r}")
