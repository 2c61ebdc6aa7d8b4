"""From times to rows, models and text, on made-up times: exact, and with noise of many seeds."""

from __future__ import annotations

import random

import pytest

from rdmacoll.tune.choice import Measured, Row, best_algorithms, rows_of
from rdmacoll.tune.model import Model, fit
from rdmacoll.tune.tables import Group, exact_size, file_lines, screen_lines

SIZES = [8 << n for n in range(20)]
# alpha in us and GB/s; of any two the one with less alpha is quicker up to some size
CURVES = {"one_shot": (3.0, 1.0), "two_shot": (6.0, 8.0), "ring": (9.0, 6.0)}


def times(noise: float = 0.0, seed: int = 0) -> dict[str, list[float]]:
    draw = random.Random(seed).uniform
    return {
        name: [(alpha + size / rate / 1e3) * (1 + draw(0, noise)) for size in SIZES]
        for name, (alpha, rate) in CURVES.items()
    }


def chosen(times_us: dict[str, list[float]], default: str = "") -> list[str]:
    sizes = SIZES[: len(next(iter(times_us.values())))]
    return best_algorithms(Measured("all_reduce", sizes, times_us, [default] * len(sizes)))


def test_the_quickest_of_two_sides_of_the_crossover() -> None:
    # 3 + s / 1000 = 6 + s / 8000 at s = 3429
    for default in CURVES:
        rows = rows_of(SIZES, chosen(times(), default))
        assert rows == [Row(2048, "one_shot"), Row(None, "two_shot")]


@pytest.mark.parametrize("seed", range(50))
def test_noise_makes_no_rows(seed: int) -> None:
    rows = rows_of(SIZES, chosen(times(noise=0.05, seed=seed)))
    assert [row.algorithm for row in rows] == ["one_shot", "two_shot"]
    assert rows[0].up_to_bytes in (2048, 4096)
    draw = random.Random(seed).uniform
    alike = {name: [1 + draw(0, 0.08) for _ in SIZES] for name in ("tree", "ring")}
    assert len(rows_of(SIZES, chosen(alike))) == 1


def test_one_slow_measurement_makes_no_rows_unless_it_costs() -> None:
    spoilt, slower = [1.0] * 9, [1.1] * 9
    assert chosen({"ring": spoilt, "tree": slower}) == ["ring"] * 9
    spoilt[4] = 1.3
    assert chosen({"ring": spoilt, "tree": slower}) == ["ring"] * 9
    spoilt[4] = 5.0
    assert chosen({"ring": spoilt, "tree": slower}) == ["ring"] * 4 + ["tree"] + ["ring"] * 4


def test_the_default_stays_where_little_is_gained() -> None:
    alike = {"ring": [1.0] * 9, "tree": [1.02] * 9}
    assert chosen(alike, "tree") == ["tree"] * 9
    assert chosen({"ring": [1.0] * 9, "tree": [1.2] * 9}, "tree") == ["ring"] * 9


def test_one_algorithm_and_one_size() -> None:
    assert chosen({"ring": [1.0, 2.0]}) == ["ring", "ring"]
    assert rows_of([8], chosen({"ring": [2.0], "tree": [1.0]})) == [Row(None, "tree")]


@pytest.mark.parametrize(("alpha_us", "gb_per_s"), CURVES.values())
def test_a_model_is_found_again(alpha_us: float, gb_per_s: float) -> None:
    model = fit(SIZES, [alpha_us + size / gb_per_s / 1e3 for size in SIZES])
    assert model.alpha_us == pytest.approx(alpha_us)
    assert model.gb_per_s == pytest.approx(gb_per_s)


def test_models_of_odd_times() -> None:
    assert fit(SIZES, [2.0] * len(SIZES)) == Model(2.0, None)
    assert fit([8], [2.0]) == Model(2.0, None)
    falling = fit([8, 16], [2.0, 1.0])
    assert falling.gb_per_s is None and 1 < falling.alpha_us < 2
    below_zero = fit([1000, 2000, 4000], [0.5, 2.0, 8.0])
    assert below_zero.alpha_us == 0 and below_zero.gb_per_s is not None
    assert str(Model(3.14159, 12.3456)) == "3.14 us + S / 12.3 GB/s"


def measured() -> Measured:
    defaults = ["one_shot" if size <= 512 else "ring" for size in SIZES]
    return Measured("all_reduce", SIZES, times(), defaults)


def test_the_file() -> None:
    lines = list(file_lines(Group(2, "mapped", "rdmacoll 1"), [measured()], None))
    assert lines[1] == "# 2 ranks, all peers mapped · rdmacoll 1."
    assert "# all_reduce two_shot: 6 us + S / 8 GB/s" in lines
    assert [line for line in lines if line and not line.startswith("#")] == [
        "all_reduce mapped world=2 up_to=2K one_shot",
        "all_reduce mapped world=2 up_to=any two_shot",
    ]
    assert [exact_size(size) for size in (24, 1536, 2048, 3 << 20, 1 << 30)] == [
        *("24", "1536", "2K", "3M", "1G"),
    ]


def test_the_screen() -> None:
    lines = list(screen_lines(measured()))
    assert lines[1].split() == [*("all_reduce", "size", *CURVES, "default", "tuned", "gain")]
    assert lines[2].split() == [*("8", "B", "3.0", "6.0", "9.0", "one_shot", "one_shot", "1.00x")]
    assert lines[-1].split()[-3:-1] == ["ring", "two_shot"]
    assert all(line.endswith("x") and len(line) == len(lines[1]) for line in lines[2:])
