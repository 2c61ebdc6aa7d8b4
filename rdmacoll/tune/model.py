"""Latency and bandwidth of an algorithm, from its times: time = alpha + bytes / bandwidth. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    alpha_us: float
    gb_per_s: float | None  # None: its time does not grow within the sizes

    def __str__(self) -> str:
        rate = "" if self.gb_per_s is None else f" + S / {self.gb_per_s:.3g} GB/s"
        return f"{self.alpha_us:.3g} us{rate}"


def fit(sizes_bytes: Sequence[int], times_us: Sequence[float]) -> Model:
    """Least squares of the relative errors: else the largest size would be all that counts."""
    weights = [1 / time**2 for time in times_us]

    def mean(values: Sequence[float]) -> float:
        return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)

    size, time = mean(sizes_bytes), mean(times_us)
    spread = mean([(s - size) ** 2 for s in sizes_bytes])
    together = [(s - size) * (t - time) for s, t in zip(sizes_bytes, times_us, strict=True)]
    us_per_byte = mean(together) / spread if spread else 0.0
    if us_per_byte <= 0:
        return Model(time, None)
    if (alpha := time - us_per_byte * size) < 0:
        squares = mean([s**2 for s in sizes_bytes])
        us_per_byte = mean([s * t for s, t in zip(sizes_bytes, times_us, strict=True)]) / squares
        alpha = 0.0
    return Model(alpha, 1 / us_per_byte / 1e3)
