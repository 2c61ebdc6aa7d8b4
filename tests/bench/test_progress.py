"""What is said while a run goes on, and of a machine that is too busy to be measured."""

from __future__ import annotations

import pytest

from rdmacoll.bench.frame import busy
from rdmacoll.bench.frame.progress import Progress, text_of


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_steps_are_said_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    progress = Progress("rdmacoll bench", 10, "sizes", True, clock)
    for _ in range(10):
        clock.now_s += 3
        progress.step()
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "rdmacoll bench: 2 of 10 sizes, about 24 s left",
        "rdmacoll bench: 4 of 10 sizes, about 18 s left",
        "rdmacoll bench: 6 of 10 sizes, about 12 s left",
        "rdmacoll bench: 8 of 10 sizes, about 6 s left",
    ]


def test_steps_of_several(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    progress = Progress("rdmacoll tune", 100, "algorithms and sizes", True, clock)
    clock.now_s += 60
    progress.step(20)
    err = capsys.readouterr().err
    assert err == "rdmacoll tune: 20 of 100 algorithms and sizes, about 4 min left\n"


def test_other_ranks_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    progress = Progress("rdmacoll bench", 2, "sizes", False, clock)
    clock.now_s += 60
    progress.step()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (89, "89 s"), (90, "2 min"), (3700, "62 min")]
)
def test_times_are_as_exact_as_estimates(seconds: float, text: str) -> None:
    assert text_of(seconds) == text


def test_a_machine_that_others_use() -> None:
    assert list(busy.before(0.4, 2)) == []
    (line,) = busy.before(12.3, 2)
    assert "load 12.3 on 2 cores" in line


def test_calls_that_take_far_longer_than_others() -> None:
    quiet, far = (10.0, 20.0), (10.0, 101.0)
    assert list(busy.after([], 2, 2)) == []
    assert list(busy.after([quiet] * 7 + [far], 2, 2)) == []
    (line,) = busy.after([quiet] * 3 + [far], 2, 2)
    assert "in 1 of 4 rows" in line and "something else has had the cores" in line
    (line,) = busy.after([far], 4, 2)
    assert "4 ranks share 2 cores" in line
