"""Which operation an allreduce is, and which of them go with what.

The numbers are Horovod's: scripts keep them.
"""

import warnings
from typing import Final

Average: Final = 0
"""The sum divided by the size of the process set; what an allreduce does by itself."""
Sum: Final = 1
"""The sum of all ranks' elements."""
Adasum: Final = 2
"""Adasum's combination, by pairs of ranks; float tensors (Maleki et al. 2020)."""
Min: Final = 3
"""The least element."""
Max: Final = 4
"""The greatest element."""
Product: Final = 5
"""The product of all ranks' elements."""

NAMES: Final = ("Average", "Sum", "Adasum", "Min", "Max", "Product")


def chosen(op: int | None, average: bool | None) -> int:
    """What `op` and `average`, which came before it, say together."""
    if average is not None:
        if op is not None:
            raise ValueError(f"op={NAMES[op]} and average={average} were both given; give op alone")
        warnings.warn(
            "average=... is the old way; give op=hvd.Average or op=hvd.Sum instead",
            DeprecationWarning,
            stacklevel=3,
        )
        return Average if average else Sum
    return Average if op is None else checked(op)


def checked(op: int) -> int:
    if op not in range(len(NAMES)):
        raise ValueError(
            f"op={op!r} is none of hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max, hvd.Product"
        )
    return op
