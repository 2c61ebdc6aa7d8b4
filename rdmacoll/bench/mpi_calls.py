"""The operations as calls of MPI, on the memory of the same tensors. mpi4py adds little to each."""

import torch
from mpi4py import MPI

from .case import ROOT, Case
from .torch_calls import Call

TYPES = {
    torch.float32: MPI.FLOAT,
    torch.float64: MPI.DOUBLE,
    torch.int8: MPI.INT8_T,
    torch.uint8: MPI.UINT8_T,
    torch.int32: MPI.INT32_T,
    torch.int64: MPI.INT64_T,
}
REDUCTIONS = {"sum": MPI.SUM, "product": MPI.PROD, "min": MPI.MIN, "max": MPI.MAX}


def mpi_call(case: Case, reduction: str) -> Call:
    world, op = MPI.COMM_WORLD, REDUCTIONS[reduction]
    one, out = _buffer(case.input), _buffer(case.output)
    rank, ranks = case.place.rank, case.place.ranks
    at_root = rank == ROOT
    match case.operation:
        case "all_reduce":
            return lambda: world.Allreduce(MPI.IN_PLACE, out, op)
        case "broadcast":
            return lambda: world.Bcast(out, ROOT)
        case "reduce":
            if at_root:
                return lambda: world.Reduce(MPI.IN_PLACE, out, op, ROOT)
            return lambda: world.Reduce(one, None, op, ROOT)
        case "all_gather":
            return lambda: world.Allgather(MPI.IN_PLACE if case.in_place else one, out)
        case "reduce_scatter":
            return lambda: world.Reduce_scatter_block(one, out, op)
        case "all_to_all":
            return lambda: world.Alltoall(one, out)
        case "gather":
            return lambda: world.Gather(one, out if at_root else None, ROOT)
        case "scatter":
            return lambda: world.Scatter(one if at_root else None, out, ROOT)
        case "send_recv":
            to, source = (rank + 1) % ranks, (rank - 1) % ranks
            return lambda: world.Sendrecv(one, to, recvbuf=out, source=source)
        case "barrier":
            return world.Barrier
    raise AssertionError(case.operation)


def _buffer(tensor: torch.Tensor) -> list[object]:
    """Without a count: mpi4py then divides the whole among the ranks where MPI wants parts."""
    return [MPI.buffer.fromaddress(tensor.data_ptr(), tensor.nbytes), TYPES[tensor.dtype]]


def mpi_version() -> str:
    """Such as "MPICH 5.0.2"."""
    name, numbers = MPI.get_vendor()
    return f"{name} {'.'.join(map(str, numbers))}"
