"""RDMACOLL_AS_GLOO=1: groups that ask for gloo get rdma, in programs that cannot name another.

torch makes gloo's groups in one private function, the same in torch 2.11 to 2.15. This wraps it, so
that tensors of the CPU go to rdma there. `dist.get_backend()` goes on to answer what was asked for,
as libraries decide by that name; `dist.get_backend_config()` answers what there is.
Floor: rdmacoll/. Thread: install() in the main one.
"""

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.distributed import distributed_c10d as c10d

NAME = "RDMACOLL_AS_GLOO"
MAKER = "_new_process_group_helper"
TAKEN = ("backend", "backend_options", "global_ranks_in_group", "group_rank")
ASKS_FOR_OTHER = "unset it and ask for the backend by its name, rdma"

_said = False


def wanted() -> bool:
    """ValueError for a value that says neither."""
    value = os.environ.get(NAME, "0")
    if value not in ("0", "1"):
        raise ValueError(f"{NAME}={value!r} is neither 0 nor 1")
    return value == "1"


def install() -> None:
    """From now on. Again: does nothing. RuntimeError: this torch makes its groups otherwise."""
    make: Any = getattr(c10d, MAKER, None)
    if hasattr(make, "stands_for"):
        return
    parameters = inspect.signature(make).parameters if callable(make) else {}
    if lacking := [name for name in TAKEN if name not in parameters]:
        raise RuntimeError(
            f"{NAME}=1: torch {torch.__version__} has no {MAKER}({', '.join(lacking)}), by which "
            f"torch 2.11 to 2.15 make groups; {ASKS_FOR_OTHER}"
        )
    setattr(c10d, MAKER, _serving(make))


def served(asked: str) -> str:
    """The backends of a group that asks for these, with rdma for what gloo does on the CPU."""
    backends = dict(c10d.BackendConfig(c10d.Backend(asked)).get_device_backend_map())
    if backends.get("cpu") != "gloo":
        return asked
    if asked == "gloo" or len(backends) == 1:
        return "rdma"
    backends["cpu"] = c10d.Backend("rdma")
    return ",".join(f"{device}:{backend}" for device, backend in backends.items())


def _serving(make: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(make)

    @functools.wraps(make)
    def make_group(*args: Any, **options: Any) -> Any:
        call = signature.bind(*args, **options)
        asked = call.arguments["backend"]
        backends = served(asked)
        if backends == asked:
            return make(*args, **options)
        _say_once(call.arguments)
        call.arguments["backend"] = c10d.Backend(backends)
        if backends == "rdma":
            call.arguments["backend_options"] = _ours(call.arguments.get("backend_options"))
        group, store = make(*call.args, **call.kwargs)
        if group != c10d.GroupMember.NON_GROUP_MEMBER:
            c10d._world.pg_map[group] = (asked, store)
        return group, store

    make_group.stands_for = "gloo"  # type: ignore[attr-defined]
    return make_group


def _ours(options: object) -> object:
    """Others are for gloo, which takes no notice of any."""
    from ._extension import extension

    return options if isinstance(options, extension().Options) else None


def _say_once(arguments: dict[str, Any]) -> None:
    """By rank 0 of the world; the default group names no ranks."""
    global _said
    of_world = not arguments["global_ranks_in_group"]
    rank = arguments["group_rank"] if of_world else torch.distributed.get_rank()
    if not _said and rank == 0:
        print(
            f"rdmacoll: {NAME}=1: groups that ask for gloo get rdma, and dist.get_backend() "
            "answers gloo",
            file=sys.stderr,
        )
    _said = True
