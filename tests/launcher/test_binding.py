"""rdmarun --bind: which cores ranks get on hosts that are not here, and that ranks are bound here.

Floor: tests.
"""

import os
from pathlib import Path

import pytest
from job_runner import TWO_HOSTS, Jobs
from rdmacoll.launcher.base.hosts import Host
from rdmacoll.launcher.base.job import Job
from rdmacoll.launcher.bind.binding import SPIN_US, Binding, bind_ranks
from rdmacoll.launcher.bind.topology import Node, list_cpus, parse_cpus, read_nodes

CORES = sum(len(node.cores) for node in read_nodes(os.sched_getaffinity(0)))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Two sockets of four cores with two threads each; CPU n and n + 8 are of one core. An adapter
    is on node 1, another one on none."""
    for cpu in range(16):
        siblings = f"{cpu % 8},{cpu % 8 + 8}"
        write(tmp_path / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", siblings)
    write(tmp_path / "devices/system/node/node0/cpulist", "0-3,8-11")
    write(tmp_path / "devices/system/node/node1/cpulist", "4-7,12-15")
    write(tmp_path / "devices/system/node/node2/cpulist", "")  # memory alone
    write(tmp_path / "class/infiniband/mlx5_0/device/numa_node", "1")
    write(tmp_path / "class/infiniband/rxe0/device/numa_node", "-1")
    return tmp_path


def bound(nodes: list[Node], ranks: int, mode: str = "cores") -> list[str]:
    binding = bind_ranks(job([Host("a", ranks)], mode), 0, nodes)
    threads = binding.env.get("OMP_NUM_THREADS")
    return [*map(list_cpus, binding.cpus), f"threads: {threads}"]


def job(hosts: list[Host], mode: str, one_machine: bool = False) -> Job:
    return Job(hosts, ["s.py"], "/", {}, "id", 1.0, bind=mode, one_machine=one_machine)


def test_nodes_and_whole_cores(sysfs: Path) -> None:
    first, second = read_nodes(set(range(16)), sysfs)
    assert first == Node(0, tuple(frozenset({n, n + 8}) for n in range(4)), has_adapter=False)
    assert second == Node(1, tuple(frozenset({n, n + 8}) for n in range(4, 8)), has_adapter=True)


def test_only_what_a_cpuset_allows(sysfs: Path) -> None:
    (node,) = read_nodes({1, 2, 9, 3}, sysfs)
    assert node.cores == ({1, 9}, {2}, {3})
    assert bound([node], 3) == ["1,9", "2", "3", "threads: 1"]


def test_a_host_that_hides_sysfs(tmp_path: Path) -> None:
    assert read_nodes({0, 5}, tmp_path) == [
        Node(None, (frozenset({0}), frozenset({5})), has_adapter=False)
    ]


@pytest.mark.parametrize(
    ("ranks", "parts"),
    [
        (1, ["0-15", "threads: 8"]),
        (2, ["0-3,8-11", "4-7,12-15", "threads: 4"]),
        (3, ["0-3,8-11", "4-5,12-13", "6-7,14-15", "threads: 2"]),
        (4, ["0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15", "threads: 2"]),
        (5, ["0-1,8-9", "2-3,10-11", "4,12", "5,13", "6-7,14-15", "threads: 1"]),
        (8, [*(f"{cpu},{cpu + 8}" for cpu in range(8)), "threads: 1"]),
        (9, ["threads: None"]),
    ],
)
def test_cores(sysfs: Path, ranks: int, parts: list[str]) -> None:
    """No part goes over two nodes where it need not, and of the two the one with the adapter gets
    what does not divide."""
    assert bound(read_nodes(set(range(16)), sysfs), ranks) == parts


@pytest.mark.parametrize(
    ("ranks", "parts"),
    [
        (1, ["4-7,12-15", "threads: 4"]),  # where the adapter is
        (2, ["0-3,8-11", "4-7,12-15", "threads: 4"]),
        (3, ["0-3,8-11", "4-7,12-15", "4-7,12-15", "threads: 2"]),
        (10, [*["0-3,8-11"] * 5, *["4-7,12-15"] * 5, "threads: 1"]),
    ],
)
def test_numa(sysfs: Path, ranks: int, parts: list[str]) -> None:
    assert bound(read_nodes(set(range(16)), sysfs), ranks, "numa") == parts


def test_nodes_of_different_sizes() -> None:
    sizes = [1, 6, 2]
    cpus = iter(range(9))
    nodes = [
        Node(number, tuple(frozenset({next(cpus)}) for _ in range(size)), False)
        for number, size in enumerate(sizes)
    ]
    assert bound(nodes, 2) == ["0-3", "4-8", "threads: 4"]
    assert bound(nodes, 9) == [*map(str, range(9)), "threads: 1"]


def test_what_is_said(sysfs: Path) -> None:
    nodes = read_nodes(set(range(16)), sysfs)
    hosts = [Host("a", 1), Host("b", 2)]
    assert bind_ranks(job(hosts, "cores"), 1, nodes).said == (
        "host b: rank 1 on CPUs 0-3,8-11 (NUMA node 0), rank 2 on CPUs 4-7,12-15 (NUMA node 1)"
    )
    short = bind_ranks(job([Host("a", 17)], "cores"), 0, nodes)
    assert short == Binding(
        [],
        {},
        "host a: 17 ranks and 8 cores: no rank is bound (--bind cores), and each gets 1 thread "
        "where OMP_NUM_THREADS is not set",
        is_short=True,
    )
    assert bind_ranks(job(hosts, "none"), 0, nodes) == Binding([], {}, "")


def test_agents_on_one_machine_share_its_cores(sysfs: Path) -> None:
    nodes = read_nodes(set(range(16)), sysfs)
    names = job([Host("localhost", 1), Host("127.0.0.1", 1)], "cores", one_machine=True)
    twice = job([Host("a", 1), Host("a", 1)], "cores")
    for split in names, twice:
        assert [bind_ranks(split, agent, nodes).cpus for agent in (0, 1)] == [
            [{0, 1, 2, 3, 8, 9, 10, 11}],
            [{4, 5, 6, 7, 12, 13, 14, 15}],
        ]


def test_the_engine_spins_where_cores_suffice(sysfs: Path) -> None:
    """It compares the ranks of a host with the CPUs that a rank may use."""
    nodes = read_nodes(set(range(16)), sysfs)
    assert bind_ranks(job([Host("a", 8)], "cores"), 0, nodes).env["RDMACOLL_SPIN_US"] == SPIN_US
    assert "RDMACOLL_SPIN_US" not in bind_ranks(job([Host("a", 9)], "numa"), 0, nodes).env


@pytest.mark.parametrize("text", ["0-3,8", "5", "", "0-1,3-4,7"])
def test_lists_of_cpus(text: str) -> None:
    assert list_cpus(parse_cpus(text)) == text


SHOW = "import os; print(*os.sched_getaffinity(0), 'threads', os.environ['OMP_NUM_THREADS'])"
needs_two = pytest.mark.skipif(CORES < 2, reason="needs two cores, which this machine has not")


@needs_two
@pytest.mark.parametrize(
    "options",
    [["-np", "2"], ["-np", "2", "--preload", "json"], TWO_HOSTS],
    ids=["one host", "preload", "two hosts"],
)
def test_ranks_are_bound(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    done = jobs.run(*options, "--bind", "cores", "--verbose", jobs.script(SHOW))
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(": ") for line in done.stdout.splitlines())
    first, second = (set(lines[f"[{rank}]"].partition(" threads ")[0].split()) for rank in (0, 1))
    assert first and second and not first & second
    assert {int(cpu) for cpu in first | second} <= os.sched_getaffinity(0)
    assert lines["[0]"].endswith(f" threads {CORES // 2}")
    assert "rank 0 on CPUs " in done.stderr and "rank 1 on CPUs " in done.stderr
    assert "OMP_NUM_THREADS is not set" not in done.stderr


@needs_two
def test_the_users_threads_stand(jobs: Jobs) -> None:
    done = jobs.run("-np", "2", "-x", "OMP_NUM_THREADS=5", "--bind", "numa", jobs.script(SHOW))
    assert all(line.endswith(" threads 5") for line in done.stdout.splitlines()), done.stderr


def test_a_job_in_a_cpuset_uses_its_cores_alone(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    allowed = os.sched_getaffinity(0)
    cpu = max(allowed)
    os.sched_setaffinity(0, {cpu})
    try:
        one = jobs.run("-np", "1", "--bind", "cores", jobs.script(SHOW))
        two = jobs.run("-np", "2", "--bind", "cores", jobs.script(SHOW))
    finally:
        os.sched_setaffinity(0, allowed)
    assert one.stdout == f"[0]: {cpu} threads 1\n", one.stderr
    assert "2 ranks and 1 cores: no rank is bound (--bind cores)" in two.stderr
    assert sorted(two.stdout.splitlines()) == [f"[{rank}]: {cpu} threads 1" for rank in (0, 1)]
