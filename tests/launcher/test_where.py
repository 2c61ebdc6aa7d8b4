"""Where the ranks go, and the line that says so.

Floor: tests.
"""

import os
from pathlib import Path

import pytest
from job_runner import Jobs
from rdmacoll.launcher.base.hosts import Host, HostError
from rdmacoll.launcher.command.options import parse
from rdmacoll.launcher.command.where import Where, choose_hosts

SLURM = {
    "SLURM_JOB_ID": "123",
    "SLURM_JOB_NODELIST": "n[1-2]",
    "SLURM_TASKS_PER_NODE": "4(x2)",
}
HERE = {"SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "localhost", "SLURM_TASKS_PER_NODE": "2"}


def test_ranks_per_host() -> None:
    """In the place of slots, wherever the hosts are from."""

    def placed(*argv: str, **environ: str) -> list[Host]:
        return parse([*argv, "s.py"], environ, "0").hosts

    two = ["--nproc-per-node", "2"]
    assert placed(*two) == placed("--nproc_per_node=2") == [Host("localhost", 2)]
    assert placed(*two, "-H", "a,b:4") == [Host("a", 2), Host("b", 2)]
    assert placed(*two, "-np", "3", "-H", "a,b") == [Host("a", 2), Host("b", 1)]
    assert placed(*two, **SLURM) == [Host("n1", 2), Host("n2", 2)]
    assert placed("-np", "1", *two) == [Host("localhost", 1)]
    cpus = len(os.sched_getaffinity(0))
    assert placed("--nproc-per-node", "cpu") == [Host("localhost", cpus)]


def test_standalone_is_this_host() -> None:
    where = choose_hosts(None, None, None, SLURM, per_host=4, standalone=True)
    assert where == Where([Host("localhost", 4)], "hosts from --standalone, not from Slurm job 123")


def test_the_allocation_is_taken() -> None:
    assert choose_hosts(None, None, 6, SLURM) == Where(
        [Host("n1", 4), Host("n2", 2)], "hosts from Slurm job 123: n1:4, n2:4"
    )


def test_without_a_number_of_ranks_every_slot_gets_one() -> None:
    assert choose_hosts(None, None, None, SLURM).hosts == [Host("n1", 4), Host("n2", 4)]
    assert choose_hosts("a:2,b", None, None, {}) == Where([Host("a", 2), Host("b", 1)], "")
    with pytest.raises(HostError, match="how many ranks"):
        choose_hosts(None, None, None, {})


def test_hosts_that_are_not_needed_are_named() -> None:
    said = choose_hosts(None, None, 4, SLURM).said
    assert said == "hosts from Slurm job 123: n1:4, n2:4 (no rank on n2)"


def test_an_allocation_that_is_overruled_is_named(tmp_path: Path) -> None:
    broken = SLURM | {"SLURM_JOB_NODELIST": "n["}  # not even read
    assert choose_hosts("a:2", None, 2, broken) == Where(
        [Host("a", 2)], "hosts from -H, not from Slurm job 123"
    )
    hostfile = tmp_path / "hosts"
    hostfile.write_text("a slots=2\n")
    assert choose_hosts(None, str(hostfile), 2, broken).said == (
        "hosts from --hostfile, not from Slurm job 123"
    )


def test_a_rank_that_starts_a_job_takes_its_own_host() -> None:
    where = choose_hosts(None, None, 2, SLURM | {"RDMACOLL_AGENT": "x"})
    assert where == Where(
        [Host("localhost", 2)],
        "hosts from this host (a rank starts this job), not from Slurm job 123",
    )


def test_of_many_hosts_some_are_named() -> None:
    many = SLURM | {"SLURM_JOB_NODELIST": "n[1-99]", "SLURM_TASKS_PER_NODE": "2(x99)"}
    said = choose_hosts(None, None, 2, many).said
    assert "n16:2, ... (99 hosts, 198 slots) (no rank on n2, " in said
    assert said.endswith("n17 and 82 more)")


def test_too_many_ranks_for_an_allocation() -> None:
    with pytest.raises(HostError, match="-np 9: there are only 8 slots on n1:4,n2:4"):
        choose_hosts(None, None, 9, SLURM)


def test_a_job_of_two_slots_of_this_host(jobs: Jobs) -> None:
    done = jobs.run(jobs.script("import os; print(os.environ['WORLD_SIZE'])"), **HERE)
    assert (done.returncode, sorted(done.stdout.split("\n"))) == (0, ["", "[0]: 2", "[1]: 2"])
    assert done.stderr.startswith("rdmarun: hosts from Slurm job 5: localhost:2\n")


def test_an_environment_that_is_cut_off(jobs: Jobs) -> None:
    done = jobs.run(jobs.script(""), **HERE | {"SLURM_TASKS_PER_NODE": "2(x"})
    assert done.returncode == 2
    assert "rdmarun: error: SLURM_TASKS_PER_NODE=2(x: '2(x' is no number above 0" in done.stderr
