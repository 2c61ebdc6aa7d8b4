"""rdmacoll.env_from_slurm(): the variables of tasks that Debian 12's Slurm 22.05 has started.

Floor: tests.
"""

import pytest

from rdmacoll.slurm import PORTS, env_from_slurm

# srun in a job of sbatch -N2 --ntasks-per-node=2: the last of its four tasks.
TASK = {
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "1",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
}
OURS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def set_by(**environ: str) -> dict[str, str]:
    env_from_slurm(environ)
    return {name: environ[name] for name in OURS if name in environ}


def test_all_variables() -> None:
    assert set_by(**TASK) == {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "n1",
        "MASTER_PORT": "20113",
    }


def test_uneven_hosts() -> None:
    uneven = TASK | {"SLURM_STEP_TASKS_PER_NODE": "3,1", "SLURM_LOCALID": "0"}
    assert set_by(**uneven)["LOCAL_WORLD_SIZE"] == "1"


def test_the_port() -> None:
    largest = TASK | {"SLURM_JOB_ID": str(2**32 - 1), "SLURM_STEP_ID": str(2**32 - 6)}
    assert int(set_by(**largest)["MASTER_PORT"]) in PORTS
    another = set_by(**TASK | {"SLURM_STEP_ID": "2"})["MASTER_PORT"]
    assert another != set_by(**TASK)["MASTER_PORT"]
    assert set_by(**TASK | {"SLURM_STEP_RESV_PORTS": "12003-12004"})["MASTER_PORT"] == "12003"


def test_what_the_user_says_of_the_master_stays() -> None:
    set_ours = set_by(**TASK, MASTER_ADDR="10.0.0.1", MASTER_PORT="5")
    assert (set_ours["MASTER_ADDR"], set_ours["MASTER_PORT"]) == ("10.0.0.1", "5")


def test_other_launchers_have_set_all_there_is() -> None:
    assert set_by(**TASK, RANK="0", WORLD_SIZE="1") == {"RANK": "0", "WORLD_SIZE": "1"}


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({}, "SLURM_STEP_ID is not set, so this is no task of Slurm's; start it with `srun python"),
        ({"SLURM_STEP_ID": "0"}, "SLURM_PROCID is not set: it is no whole number"),
        (TASK | {"SLURM_STEP_NODELIST": "n[1-"}, "SLURM_STEP_NODELIST=n[1-: a bracket is missing"),
        (TASK | {"SLURM_STEP_TASKS_PER_NODE": "2"}, "it counts no task of node 1"),
        (TASK | {"SLURM_LOCALID": "-1"}, "SLURM_LOCALID=-1: it is no whole number"),
        (TASK | {"SLURM_STEP_RESV_PORTS": "x"}, "SLURM_STEP_RESV_PORTS=x: it begins with no port"),
    ],
)
def test_no_task_of_slurm(environ: dict[str, str], says: str) -> None:
    before = dict(environ)
    with pytest.raises(RuntimeError) as error:
        env_from_slurm(environ)
    assert says in str(error.value)
    assert environ == before
