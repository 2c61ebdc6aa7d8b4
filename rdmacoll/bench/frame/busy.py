"""Whether a machine is too busy to be measured, in words. Pure, but for load()."""

import os
from collections.abc import Iterable, Iterator

FAR = 10.0  # times the p50: a p99 beyond has met somebody else on its core
MANY = 0.25  # of what was measured


def load() -> float:
    """Processes that want a core, averaged over the last minute: before a run, others' alone."""
    return os.getloadavg()[0]


def before(load_of_others: float, cores: int) -> Iterator[str]:
    """Lines about what else is running."""
    if load_of_others > cores / 2:
        yield (
            f"warning: something else is running (load {load_of_others:.1f} on {cores} cores): "
            "times and ratios are those of a busy machine"
        )


def after(p50_and_p99_us: Iterable[tuple[float, float]], ranks: int, cores: int) -> Iterator[str]:
    """Lines about calls that took far longer than others."""
    pairs = list(p50_and_p99_us)
    far = sum(p99 > FAR * p50 for p50, p99 in pairs)
    if not pairs or far < MANY * len(pairs):
        return
    why = (
        f"{ranks} ranks share {cores} cores"
        if ranks > cores
        else "something else has had the cores meanwhile"
    )
    yield (
        f"warning: in {far} of {len(pairs)} rows the p99 is more than {FAR:g} times the p50: "
        f"{why}; do not quote these ratios"
    )
