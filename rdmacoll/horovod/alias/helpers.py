"""What scripts take from horovod.common.util and from horovod.runner, which are no part of hvd.

Floor: rdmacoll/horovod/alias. Thread: any; env() changes the environment of all.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rdmacoll.horovod import built


def check_extension(_name: str, _variable: str, _package: str, *_library: str) -> None:
    """Horovod raises ImportError where a framework's part is not built. Ours has been loaded."""


def mpi_built(verbose: bool = False) -> bool:
    return built.mpi_built()


def gloo_built(verbose: bool = False) -> bool:
    return built.gloo_built()


def nccl_built(verbose: bool = False) -> int:
    return built.nccl_built()


@contextmanager
def env(**variables: str | None) -> Iterator[None]:
    """Sets these for a while; those that are None stay as they are."""
    wanted = {name: value for name, value in variables.items() if value is not None}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def in_thread(
    target: Callable[..., object],
    args: tuple[object, ...] = (),
    name: str | None = None,
    daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Starts a thread. silent: what the target raises is not printed. ValueError: args is no
    tuple."""
    if not isinstance(args, tuple):
        raise ValueError(f"args={args!r} is no tuple; give (value,) for one argument")

    def quiet() -> None:
        with suppress(BaseException):
            target(*args)

    if silent:
        thread = threading.Thread(target=quiet, name=name, daemon=daemon)
    else:
        thread = threading.Thread(target=target, args=args, name=name, daemon=daemon)
    thread.start()
    return thread


def get_env_rank_and_size() -> tuple[int, int]:
    """Of this process, as its launcher says; (0, 1) without one. RuntimeError: it says half."""
    for prefix in "HOROVOD_", "OMPI_COMM_WORLD_", "PMI_":
        names = f"{prefix}RANK", f"{prefix}SIZE"
        rank, size = map(os.environ.get, names)
        if rank is not None and size is not None:
            return int(rank), int(size)
        if rank is not None or size is not None:
            raise RuntimeError(f"only one of {' and '.join(names)} is set; set both or none")
    return 0, 1
