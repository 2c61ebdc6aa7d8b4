"""What programs read: what is sent, what is least, what is taken; large worlds; pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rdmacoll.plan.least import least_out_bytes
from rdmacoll.plan.options import WITH_ROOT

Plan = Callable[[str], str]
Data = Callable[[str], dict[str, Any]]

COLLECTIVES = (
    "all_reduce",
    "broadcast",
    "reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "gather",
    "scatter",
)
WITH_RAILS = COLLECTIVES[:5]
MIB = 1 << 20
LARGE_WORLD_S = 60  # it takes a few


def forecast(facts: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in facts["algorithms"] if each["name"] == name)


def test_shape_of_the_answer(data: Data) -> None:
    facts = data("--hosts 3+1 --bytes 4K --rank 3")
    assert facts["hosts"] == [3, 1]
    assert (facts["shape"], facts["ranks"]) == ("3+1", 4)
    assert (facts["collective"], facts["bytes"]) == ("all_reduce", 4 << 10)
    assert facts["taken"] == facts["shown"] == "leaders"
    assert "predicted" in facts["times"]
    times = [each["time_ns"] for each in facts["algorithms"]]
    assert times == sorted(times) and times[0] > 0
    assert set(facts["algorithms"][0]) == {
        "name",
        "time_ns",
        "out_bytes",
        "in_bytes",
        "network_latencies",
        "memory_latencies",
        "tiles",
    }
    assert sorted(rank for role in facts["roles"] for rank in role["ranks"]) == [0, 1, 2, 3]
    assert [plan["rank"] for plan in facts["steps"]] == [3]
    kinds = {step["kind"] for lane in facts["steps"][0]["lanes"] for step in lane}
    assert kinds <= {"wait", "signal", "copy", "reduce"}
    link = facts["host_links"][0]
    assert link == {"from": 0, "to": 1, "bytes": 4 << 10, "messages": 1, "pairs": 1}


@pytest.mark.parametrize("hosts", ["2x2", "4x2", "8x4"])
@pytest.mark.parametrize("collective", WITH_RAILS)
def test_rails_send_the_least(collective: str, hosts: str, data: Data) -> None:
    facts = data(f"--hosts {hosts} --collective {collective} --bytes 64M --algorithm rails")
    assert forecast(facts, "rails")["out_bytes"] == facts["least_out_bytes"]


@pytest.mark.parametrize(
    ("collective", "links"), [("all_to_all", 56), ("gather", 7), ("scatter", 7)]
)
def test_small_blocks_of_a_host_go_together(collective: str, links: int, data: Data) -> None:
    facts = data(f"--hosts 8x8 --collective {collective} --bytes 16K")
    assert facts["taken"] == facts["shown"] == "leaders"
    assert forecast(facts, "leaders")["out_bytes"] == facts["least_out_bytes"]
    assert len(facts["host_links"]) == links
    assert {link["messages"] for link in facts["host_links"]} == {1}
    large = data(f"--hosts 8x8 --collective {collective} --bytes 64M --algorithm direct")
    assert {link["messages"] for link in large["host_links"]} >= {8 if links == 7 else 64}


def test_least() -> None:
    even, uneven = [8] * 4, [3, 1]
    assert least_out_bytes("all_reduce", even, 64, 0) == 96
    assert least_out_bytes("broadcast", even, 64, 0) == 64
    assert least_out_bytes("reduce", uneven, 64, 0) == 64
    assert least_out_bytes("all_gather", even, 64, 0) == 48
    assert least_out_bytes("scatter", even, 64, 0) == 48
    assert least_out_bytes("all_gather", uneven, 64, 0) == 48
    assert least_out_bytes("reduce_scatter", uneven, 64, 0) == 48
    assert least_out_bytes("all_to_all", even, 64, 0) == 8 * 48
    assert least_out_bytes("gather", even, 64, 0) == least_out_bytes("gather", uneven, 64, 0) == 16
    assert least_out_bytes("barrier", even, 0, 0) == least_out_bytes("all_reduce", [8], 64, 0) == 0


def test_least_of_a_root_elsewhere() -> None:
    assert least_out_bytes("gather", [3, 1], 64, 1) == 48
    assert least_out_bytes("scatter", [3, 1], 64, 1) == 48
    assert least_out_bytes("broadcast", [3, 1], 64, 1) == 64


@pytest.mark.parametrize("hosts", ["4x2", "3+1", "2+1+4"])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_nothing_sends_less_than_the_least(collective: str, hosts: str, data: Data) -> None:
    """And what hosts send each other, step by step, adds up to what is forecast."""
    size = 840 * MIB  # in whole parts for all of these
    command = f"--hosts {hosts} --collective {collective} --bytes {size}"
    for rooted in (command, f"{command} --root 3") if collective in WITH_ROOT else (command,):
        for each in data(rooted)["algorithms"]:
            facts = data(f"{rooted} --algorithm {each['name']}")
            out = dict.fromkeys(range(len(facts["hosts"])), 0)
            for link in facts["host_links"]:
                out[link["from"]] += link["bytes"]
            assert max(out.values()) >= facts["least_out_bytes"]
            assert max(out.values()) == pytest.approx(each["out_bytes"], rel=1e-4)


def test_what_is_taken(
    data: Data, refusal: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "--hosts 2x2 --bytes 64M"
    table = tmp_path / "tuning.txt"
    table.write_text("all_reduce hosts=2x2 world=4 up_to=any ring\n")
    assert data(f"{command} --tuning {table}")["taken"] == "ring"
    monkeypatch.setenv("RDMACOLL_TUNING", str(table))
    assert data(command)["taken"] == "ring"
    other = tmp_path / "other.txt"
    other.write_text("all_reduce hosts=2x2 world=4 up_to=any tree\n")
    assert data(f"{command} --tuning {other}")["taken"] == "tree"
    table.write_text("all_reduce hosts=2x2 world=4 up_to=any circle\n")
    assert refusal(command).startswith(f"RDMACOLL_TUNING='{table}', line 1: 'circle' is no")
    monkeypatch.delenv("RDMACOLL_TUNING")
    assert refusal(f"{command} --tuning {table}").startswith(f"--tuning {table}: line 1: 'circle'")
    monkeypatch.setenv("RDMACOLL_ALGO", "direct")
    assert data(command)["taken"] == "direct"
    monkeypatch.setenv("RDMACOLL_DETERMINISTIC", "layout")
    assert data(command)["taken"] == "direct"
    monkeypatch.setenv("RDMACOLL_ALGO", "circle")
    assert "RDMACOLL_ALGO" in refusal(command)


@pytest.mark.timeout(LARGE_WORLD_S)
@pytest.mark.parametrize(
    ("hosts", "sent"),
    [(512, "1.996"), pytest.param(2048, "1.999", marks=pytest.mark.nightly)],
)
def test_thousands_of_ranks_in_seconds(hosts: int, sent: str, plan: Plan) -> None:
    text = plan(f"--hosts {hosts}x8 --bytes 1G --algorithm rails")
    start = f"all_reduce of 1 GB on {hosts} hosts ({hosts}x8): {hosts * 8} ranks\n"
    assert text.startswith(start)
    assert f"{sent} GB         1.00x        2       2" in text
    assert f"({hosts - 1} of them) across the network" in text


@pytest.mark.parametrize(
    ("command", "hosts"),
    [
        ("--hosts 2x2 --bytes 64M", 2),
        ("--hosts 4 --bytes 64M", 1),
        ("--hosts 3+1+2 --bytes 64M --collective reduce", 3),
        ("--hosts 3x2 --collective barrier", 3),
        ("--hosts 8x8 --bytes 64M --algorithm direct", 8),
    ],
)
def test_picture(command: str, hosts: int, plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.svg"
    plan(f"{command} --svg {path}")
    drawn = path.read_text()
    assert "</svg>" in drawn
    assert [f">host {host}<" in drawn for host in range(hosts + 1)] == [True] * hosts + [False]


def test_labels_of_a_picture_are_bytes_of_the_whole_operation(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.svg"
    plan(f"--hosts 3+1 --collective broadcast --bytes 4K --svg {path}")
    assert path.read_text().count(">4 KB<") == 1


def test_without_matplotlib(refusal: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = refusal("--hosts 2x2 --bytes 1 --svg x.svg")
    assert "--svg x.svg: needs matplotlib; pip install 'rdmacoll[bench]'" in said
