"""What a script asks about how Horovod was built. rdmacoll stands where Gloo does: no MPI, no NCCL.

They may be called before init(), but for the enabled ones as in Horovod.
"""

from .names import world


def mpi_threads_supported() -> bool:
    """Whether MPI may be called from several threads: there is none."""
    world.current()
    return False


def mpi_enabled() -> bool:
    """Whether ranks meet by MPI, which they do not."""
    world.current()
    return False


def mpi_built() -> bool:
    """False: no operation goes by MPI."""
    return False


def gloo_enabled() -> bool:
    """Whether ranks meet without MPI, which they do."""
    world.current()
    return True


def gloo_built() -> bool:
    """True: what a script does for Gloo is right here."""
    return True


def nccl_built() -> int:
    """NCCL's version; 0: there is none, as tensors are on the CPU."""
    return 0


def ddl_built() -> bool:
    """False: there is no IBM DDL."""
    return False


def ccl_built() -> bool:
    """False: there is no oneCCL."""
    return False


def cuda_built() -> bool:
    """False: tensors are on the CPU."""
    return False


def rocm_built() -> bool:
    """False: tensors are on the CPU."""
    return False
