"""The variables that a rank sees.

Floor: tests.
"""

from dataclasses import replace

from rdmacoll.launcher.agent.rank_env import (
    OWN,
    Attempt,
    Master,
    mount_env,
    own_env,
    server_env,
    shared_env,
)
from rdmacoll.launcher.base.hosts import Host, master_address
from rdmacoll.launcher.base.job import Job

FIRST = Attempt(0, Master("a", 1234), b"secret")
JOB = Job(
    hosts=[Host("a", 2), Host("b", 1)],
    argv=["script.py"],
    cwd="/",
    env={"PATH": "/bin", "RANK": "7"},
    run_id="id",
    start_timeout_s=1.0,
)


def rank_env(job: Job, agent: int, local_rank: int, rendezvous: str) -> dict[str, str]:
    return shared_env(job) | own_env(job, agent, local_rank, FIRST, rendezvous)


def test_rank_of_the_second_host() -> None:
    assert rank_env(JOB, 1, 0, "@address") == {
        "PATH": "/bin",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        "RANK": "2",
        "WORLD_SIZE": "3",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "GROUP_RANK": "1",
        "GROUP_WORLD_SIZE": "2",
        "ROLE_NAME": "default",
        "ROLE_RANK": "2",
        "ROLE_WORLD_SIZE": "3",
        "MASTER_ADDR": "a",
        "MASTER_PORT": "1234",
        "TORCHELASTIC_RUN_ID": "id",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "RDMACOLL_AGENT": "@address",
        "HOROVOD_RANK": "2",
        "HOROVOD_SIZE": "3",
        "HOROVOD_LOCAL_RANK": "0",
        "HOROVOD_LOCAL_SIZE": "1",
        "HOROVOD_CROSS_RANK": "1",
        "HOROVOD_CROSS_SIZE": "2",
    }


def test_horovods_cross_ranks_are_among_hosts_that_have_the_local_rank() -> None:
    job = replace(JOB, hosts=[Host("a", 1), Host("b", 3), Host("c", 2)])
    ranks = [(agent, local) for agent, host in enumerate(job.hosts) for local in range(host.slots)]
    envs = [rank_env(job, *rank, "") for rank in ranks]
    cross = [(env["HOROVOD_CROSS_RANK"], env["HOROVOD_CROSS_SIZE"]) for env in envs]
    assert cross == [("0", "3"), ("1", "3"), ("0", "2"), ("0", "1"), ("2", "3"), ("1", "2")]


def test_server_of_the_second_host() -> None:
    job = replace(JOB, servers=[0, 1], server_memory_bytes=8, server_replicas=1)
    assert shared_env(job) | server_env(job, 3, FIRST, "@address", 1) == {
        "PATH": "/bin",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        "WORLD_SIZE": "3",
        "MASTER_ADDR": "a",
        "MASTER_PORT": "1234",
        "TORCHELASTIC_RUN_ID": "id",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "RDMACOLL_AGENT": "@address",
        "RDMACOLL_SERVERS": "2",
        "RDMACOLL_SERVER": "1",
        "RDMACOLL_SERVER_START": "3",
        "RDMACOLL_SERVER_MEMORY": "8",
        "RDMACOLL_SERVER_REPLICAS": "1",
        "RDMACOLL_SERVER_HOSTS": "0,1",
    }
    assert rank_env(job, 0, 0, "")["RDMACOLL_SERVERS"] == "2"
    assert job.servers_of(1) == [1]


def test_the_mount() -> None:
    job = replace(JOB, servers=[0, 1], mount="/folder")
    env = shared_env(job) | mount_env(job, 3, FIRST, "@address")
    assert env["RDMACOLL_MOUNT"] == rank_env(job, 0, 0, "")["RDMACOLL_MOUNT"] == "/folder"
    assert (env["RDMACOLL_AGENT"], env["RDMACOLL_SERVERS"]) == ("@address", "2")
    assert "RDMACOLL_SERVER" not in env and "RANK" not in env


def test_variables_of_an_outer_job_are_not_inherited() -> None:
    outer = {"RDMACOLL_ELASTIC": "joins", "RDMACOLL_AGENT": "@outer", "HOROVOD_ELASTIC": "1"}
    job = replace(JOB, env=outer)
    env = rank_env(job, 0, 0, "@inner")
    assert not OWN & shared_env(job).keys()
    whole = replace(job, elastic=True, servers=[0], server_memory_bytes=1, mount="/folder")
    of_rank, of_server = own_env(whole, 0, 0, FIRST, ""), server_env(whole, 0, FIRST, "", 0)
    assert of_rank.keys() | of_server.keys() == OWN
    assert "RDMACOLL_ELASTIC" not in env and "HOROVOD_ELASTIC" not in env
    assert own_env(whole, 0, 0, FIRST, "")["HOROVOD_ELASTIC"] == "1"
    assert env["RDMACOLL_AGENT"] == "@inner"


def test_an_attempt_survives_its_journey_without_its_secret() -> None:
    assert Attempt.from_text(FIRST.to_text(), b"secret") == FIRST
    assert b"secret" not in FIRST.to_text()
    assert FIRST.id != replace(FIRST, secret=b"another").id


def test_the_users_thread_count_is_kept() -> None:
    job = replace(JOB, env={"OMP_NUM_THREADS": "5"})
    assert rank_env(job, 0, 0, "")["OMP_NUM_THREADS"] == "5"


def test_one_rank_per_host_keeps_all_threads() -> None:
    job = replace(JOB, hosts=[Host("a", 1), Host("b", 1)])
    assert "OMP_NUM_THREADS" not in rank_env(job, 0, 0, "")


def test_master_address_is_one_that_all_hosts_can_reach() -> None:
    def of(*names: str) -> str:
        return master_address([Host(name, 1) for name in names], "node0")

    assert of("localhost", "127.0.0.1") == "127.0.0.1"
    assert of("a", "b") == "a"
    assert of("localhost", "b") == "node0"


def test_a_job_survives_its_journey() -> None:
    job = replace(JOB, env={"ODD": "a\nb\udcff", "EMPTY": ""}, output_dir="out")
    text = job.to_text()
    assert b"\n" not in text
    assert Job.from_text(text) == job
    assert [job.host_of(rank) for rank in range(3)] == ["a", "a", "b"]
