"""Makes the name "rdma" known to torch. An entry point: `import torch` runs it at its end.

So it is small, imports no extension, and lets no exception out: that would break `import torch`.
"""


def register() -> None:
    """Registers the backend, once."""
    try:
        import torch.distributed as dist

        if not dist.is_available() or "RDMA" in dist.Backend._plugins:
            return
        from ._create import create

        dist.Backend.register_backend("rdma", create, extended_api=True, devices=["cpu"])
    except Exception as error:
        import warnings

        warnings.warn(f'rdmacoll could not register the backend "rdma": {error}', stacklevel=2)
