"""What people read: the table, the plan in words, the steps, and what is wrong with arguments."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rdmacoll.plan.text import text_of_time
from rdmacoll.plan.words import numbers

Plan = Callable[[str], str]


def row(text: str, algorithm: str) -> str:
    """Of the table, without its blanks."""
    return next(" ".join(x.split()) for x in text.splitlines() if x.startswith(algorithm + " "))


def test_two_hosts_of_two(plan: Plan) -> None:
    text = plan("--hosts 2x2 --bytes 64M")
    assert text.startswith("all_reduce of 64 MB on 2 hosts (2x2): 4 ranks\n")
    assert "at least 64 MB must leave the host that sends most" in text
    assert "predicted from default link costs; `rdmacoll tune` measures yours" in text
    taken = row(text, "rails")
    assert "64 MB 1.00x 2 2 128 <- taken" in taken
    assert "96 MB 1.50x" in row(text, "ring")
    assert "<-" not in row(text, "ring")
    assert "each host to each other: 64 MB, between 2 pairs of ranks, 4 messages per tile" in text
    assert "rank 0, and like it ranks 1-3\n" in text
    assert (
        "- folds its input with what rank 1 shows and sends it to rank 2 across the network "
        "(block 1: 16 MB) -"
    ) in " ".join(text.split())


def test_whose_link_costs_times_are_from(plan: Plan, tmp_path: Path) -> None:
    table = tmp_path / "tuning.txt"
    command = f"--hosts 2x2 --bytes 64M --tuning {table}"
    table.write_text("link network latency_ns=15001\n")
    assert "Times are predicted from the link costs of the tuned table.\n" in plan(command)
    for no_news in ("", "link network latency_ns=15000\n"):
        table.write_text(no_news)
        assert "Times are predicted from default link costs; " in plan(command)


def test_uneven_hosts_and_another_algorithm(plan: Plan) -> None:
    text = plan("--hosts 3+1 --collective broadcast --bytes 4K --algorithm tree")
    assert text.startswith("broadcast of 4 KB on 2 hosts (3+1): 4 ranks\n")
    assert row(text, "leaders").endswith("<- taken")
    assert row(text, "tree").endswith("<- shown")
    assert "\ntree: 1 block\n" in text
    assert "host 0 to 1: 4 KB, between 1 pair of ranks, 1 message per tile" in text
    assert (
        "takes what rank 2 has sent across the network and writes it to its output "
        "(block 0: 4 KB)" in text
    )


def test_on_one_host_nothing_leaves(plan: Plan) -> None:
    text = plan("--hosts 4 --bytes 64M")
    assert text.startswith("all_reduce of 64 MB on 1 host (4): 4 ranks\n\n")
    assert " - - 0 2 " in row(text, "two_shot")
    assert "host 0" not in text


def test_a_barrier_is_its_tokens(plan: Plan) -> None:
    text = plan("--hosts 2x2 --collective barrier")
    assert "\nleaders\n  each host to each other: between 1 pair of ranks" in text
    said = [line.strip() for line in text.partition("rank 0, and like it rank 2")[2].splitlines()]
    assert said[1:5] == [
        "- waits for rank 1 inside the host",
        "- signals rank 2 across the network",
        "- waits for rank 2 across the network",
        "- signals rank 1 inside the host",
    ]


def test_steps(plan: Plan) -> None:
    text = plan("--hosts 2x2 --bytes 1M --steps")
    assert [line for line in text.splitlines() if line.startswith("rank ")] == [
        f"rank {rank}" for rank in range(4)
    ]
    assert "    reduce  input[1] + stage of 1 [1] -> slot at 2 [1]  256 KB\n" in text
    assert "    wait    credit from rank 1, channel 2\n" in text
    assert "    signal  message to rank 1, channel 2\n" in text
    alone = plan("--hosts 2x2 --bytes 1M --rank 3")
    assert [line for line in alone.splitlines() if line.startswith("rank ")] == ["rank 3"]


def test_many_roles_are_not_all_told(plan: Plan) -> None:
    text = plan("--hosts 3x7+2 --bytes 1M --algorithm tree")
    assert text.count("\n  rank ") == 6
    assert "  and 1 other kinds of ranks; --rank R shows one\n" in text


WRONG = [
    ("--hosts 0x2 --bytes 1", "hosts: '0x2' is no number of hosts and ranks; give 2x4"),
    ("--hosts 2x2 --bytes 1 --root 1", "--root 1: all_reduce has none; leave it out"),
    (
        "--hosts 2x2 --bytes 1 --collective reduce --root 4",
        "root: 4 is none of 2x2; give 0 to 3",
    ),
    ("--hosts 2x9000 --bytes 1", "at most 4096 ranks on a host and 16384 in all"),
    ("--hosts 1 --bytes 1", "--hosts 1: a collective takes at least 2 ranks"),
    ("--hosts 2x2", "how many bytes? give --bytes 64M"),
    ("--hosts 2x2 --bytes -1", "--bytes -1: '-1' is not a size; give bytes, or 64K"),
    ("--hosts 2x2 --bytes 2T", "bytes: 2199023255552 is not possible; give 0 to 1T"),
    ("--hosts 2x2 --bytes 1 --collective foo", "collective: 'foo' is none; there are all_reduce,"),
    ("--hosts 2x2 --bytes 1 --collective barrier", "--bytes 1: a barrier moves none; leave it out"),
    (
        "--hosts 2x2 --bytes 1 --algorithm two_shot",
        "algorithm: 'two_shot' is none of all_reduce on 2x2; there are one_shot,",
    ),
    ("--hosts 2x2 --bytes 1 --rank 99", "rank: 99 is none of 2x2; give 0 to 3"),
    ("--hosts 2x2 --bytes 1 --rank -1", "rank: -1 is none of 2x2; give 0 to 3"),
    ("--hosts 65 --bytes 1 --steps", "--steps: 65 ranks are more than 64; name one with --rank R"),
    ("--hosts 9x1 --bytes 1 --svg x.svg", "draw 8 hosts and 64 ranks at most"),
    ("--hosts 65 --bytes 1 --svg x.svg", "1 hosts and 65 ranks do not fit in a picture"),
    ("--hosts 2x2 --bytes 1 --svg x.png", "--svg x.png: the name must end in .svg"),
    ("--hosts 2x2 --bytes 1 --svg nowhere/x.svg", "there is no folder nowhere; make it"),
    ("--hosts 2x2 --bytes 1 --tuning nowhere", "--tuning nowhere: No such file or directory; name"),
]


@pytest.mark.parametrize(("arguments", "says"), WRONG, ids=lambda value: str(value)[:60])
def test_wrong_arguments(
    arguments: str, says: str, refusal: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in refusal(arguments)


def test_times() -> None:
    assert [text_of_time(ns) for ns in (0, 999, 1500, 26_100_000, 90 * 10**9, 10**15)] == [
        "0 ns",
        "999 ns",
        "1.5 us",
        "26.1 ms",
        "90.0 s",
        "11.6 d",
    ]


def test_numbers() -> None:
    assert numbers("rank", [3]) == "rank 3"
    assert numbers("rank", [2, 1, 3, 5]) == "ranks 1-3, 5"
    assert numbers("rank", range(0, 64, 8)) == "ranks 0, 8, 16, ... 56 (8 of them)"


def test_a_reader_that_has_seen_enough() -> None:
    many_lines = ["-m", "rdmacoll", "plan", "--hosts", "8x8", "--bytes", "1M", "--steps"]
    piped = [sys.executable, *many_lines]
    with subprocess.Popen(piped, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert command.stdout is not None and command.stderr is not None
        command.stdout.readline()
        command.stdout.close()
        assert command.stderr.read() == b""
        assert command.wait() == 0


def test_no_room_for_the_output() -> None:
    with open("/dev/full", "w") as full:
        piped = [sys.executable, "-m", "rdmacoll", "plan", "--hosts", "2x2", "--bytes", "1M"]
        done = subprocess.run(piped, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "rdmacoll: the output cannot be written: No space left on device\n"
