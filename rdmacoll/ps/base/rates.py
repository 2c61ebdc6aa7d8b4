"""Rates: what schedules change of an optimizer from step to step; it goes with each push.

Floor: rdmacoll/ps/base. Thread: any.
"""

from __future__ import annotations

from dataclasses import replace

from .optimizers import SGD, Adam, Optimizer, to_engine

# The learning rate, and the momentum, which of Adam is betas[0]; None: as the table was made.
Rates = tuple[float | None, float | None]
AS_MADE: Rates = (None, None)


def with_lr(lr: float | None) -> Rates:
    """Raises TypeError."""
    if lr is None:
        return AS_MADE
    if isinstance(lr, bool) or not isinstance(lr, int | float):
        raise TypeError(f"lr is a {type(lr).__name__}; give a float, or None")
    return float(lr), None


def changed(made: Optimizer, now: Optimizer, table: str) -> Rates:
    """The rates that a schedule has made of those that the table has; of the same class. Raises
    ValueError for what no optimizer takes, or where anything else has changed."""
    if now == made:
        return AS_MADE
    may_be, momentum = replace(made, lr=now.lr), None
    if isinstance(may_be, SGD) and isinstance(now, SGD):
        momentum = float(now.momentum)
        may_be = replace(may_be, momentum=now.momentum)
    elif isinstance(may_be, Adam) and isinstance(now, Adam):
        momentum = float(now.betas[0])
        may_be = replace(may_be, betas=(now.betas[0], may_be.betas[1]))
    for name, value in vars(now).items():
        if value != getattr(may_be, name):
            raise ValueError(
                f"{name} is {value} now, and {getattr(made, name)} at the servers, which keep what "
                f"the table {table!r} was made with; change it back: schedules may change lr, and "
                "momentum or betas[0]"
            )
    return checked(made, (float(now.lr), momentum), table)


def checked(made: Optimizer | None, rates: Rates, table: str) -> Rates:
    """Raises ValueError."""
    if rates == AS_MADE:
        return rates
    engine = to_engine(made)
    if engine is None:
        raise ValueError(f"lr={rates[0]}: the table {table!r} has no optimizer; leave lr out")
    try:
        engine.check_rates(rates)
    except ValueError as error:
        raise ValueError(f"table {table!r}: {error}") from None
    return rates
