"""What this process has of remote memory: one face of the engine for each endpoint it has."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import torch.distributed as dist

from ..._extension import extension
from ...failure import backend_of

if TYPE_CHECKING:
    from ..._C import RdmaBackend, Remote

_lock = threading.Lock()
_faces: dict[int, Remote] = {}  # by endpoint


def backend(group: dist.ProcessGroup | None) -> RdmaBackend:
    """The backend rdma of the group; None: of the default group.

    Raises ValueError where there is no group yet, and TypeError for a group of another backend.
    """
    if group is None and not dist.is_initialized():
        raise ValueError(
            "there is no process group: call torch.distributed.init_process_group("
            'backend="rdma") before remote memory is used'
        )
    return backend_of(group)


def face(group: dist.ProcessGroup | None) -> Remote:
    """The process's remote memory, as the group reaches others. It stays when the group goes."""
    of_group = backend(group)
    module = extension()
    endpoint = module.Remote.endpoint_of(of_group)
    with _lock:
        if endpoint not in _faces:
            _faces[endpoint] = module.Remote(of_group)
        return _faces[endpoint]


def stats() -> dict[str, int]:
    """What this process holds for others and of others. Any thread; does not wait.

    memory_bytes   memory of this process that others can reach, pinned where there is a device
    exposures      names under which others can open some of it
    openings       of these, by others, and not closed yet
    opened         exposures of others that this process has open
    lent_bytes     of the memory, what others have allocated here
    posted         tensors in mailboxes of others, and not taken yet
    sessions       other processes with which this one uses memory, or did in the last ten seconds
    """
    with _lock:
        of_each = [one.stats() for one in _faces.values()]
    names = ("memory_bytes", "exposures", "openings", "opened", "lent_bytes", "posted", "sessions")
    return {name: sum(one[name] for one in of_each) for name in names}
