"""Makes the name "rdma" known to torch. An entry point: `import torch` runs it at its end.

So it is small and imports no extension. It lets no exception out, which would break `import torch`,
but for what a user has asked for and would not get.
"""

import os


def register() -> None:
    """Registers the backend, once. RDMACOLL_AS_GLOO, RuntimeError and ValueError: see as_gloo."""
    try:
        import torch.distributed as dist

        if not dist.is_available():
            return
        if "RDMA" not in dist.Backend._plugins:
            from ._apart import watch_rank
            from ._create import create

            dist.Backend.register_backend("rdma", create, extended_api=True, devices=["cpu"])
            watch_rank()
    except Exception as error:
        import warnings

        warnings.warn(f'rdmacoll could not register the backend "rdma": {error}', stacklevel=2)
        return
    if "RDMACOLL_AS_GLOO" in os.environ:
        from . import as_gloo

        if as_gloo.wanted():
            as_gloo.install()
