"""What agents of several hosts prove to each other before they are told the job, and by which key.

The other hosts are this one: a stand-in for ssh notes the commands and runs them here.
Floor: tests.
"""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest
from job_runner import LIMIT_S, Jobs, command_of, wait_for
from rdmacoll.launcher.base.comm import Gathering
from rdmacoll.launcher.command.mpi_env import mpi_environment
from rdmacoll.launcher.keys.key import Key, NotOfTheJob, Trust, establish_trust
from rdmacoll.launcher.keys.remote_shell import remote_shell
from test_mpi import HYDRA, TWO_AGENTS, bare_python

TWO_HOSTS = ["-np", "2", "-H", "nodeA:1,nodeB:1"]
KEY = Key(b"k" * 32, "run")

# Called as `ssh [-x] HOST COMMAND`, it runs the command; before nodeB's key holder it runs {on_b}.
SSH = """#!/bin/bash
[ "$1" = -x ] && shift
host=$1; shift
echo "$host $*" >>{calls}
if [ $host = nodeB ] && [[ "$*" == *key_holder* ]]; then
  {on_b}
fi
exec bash -c "$*"
"""
STAY = """
    import os, time
    open("up." + os.environ["RANK"], "w")
    while not os.path.exists("enough"):
        time.sleep(0.01)
    print(os.environ["API_TOKEN"])
"""


class Together:
    """What the agents of a test share: each is a thread with a Comm of its own.

    `tamper` changes what agent 0 hears.
    """

    def __init__(self, size: int, tamper: Callable[[list[bytes]], list[bytes]]) -> None:
        self.size = size
        self.said = [b""] * size
        self.barrier = threading.Barrier(size, timeout=60)
        self.tamper = tamper


class OneOf:
    must_be_tested = False

    def __init__(self, rank: int, all_agents: Together) -> None:
        self.rank = rank
        self.size = all_agents.size
        self._all = all_agents
        self._got = b""

    def begin_gathering(self, mine: bytes, _: Sequence[int]) -> Gathering:
        self._all.said[self.rank] = mine
        self._all.barrier.wait()
        said = list(self._all.said)
        self._got = b"".join(self._all.tamper(said) if self.rank == 0 else said)
        self._all.barrier.wait()
        return self

    def test(self) -> bytes:
        return self._got

    def wait(self) -> bytes:
        return self._got


def as_it_is(said: list[bytes]) -> list[bytes]:
    return said


def meet(
    keys: Sequence[Key], tamper: Callable[[list[bytes]], list[bytes]] = as_it_is
) -> list[Trust | str]:
    """What each agent gets: trust, or an error."""
    together = Together(len(keys), tamper)
    outcomes: list[Trust | str] = [""] * len(keys)
    hosts = [f"node{agent}" for agent in range(len(keys))]

    def run(agent: int) -> None:
        try:
            outcomes[agent] = establish_trust(OneOf(agent, together), keys[agent], hosts)
        except NotOfTheJob as error:
            outcomes[agent] = str(error)

    threads = [threading.Thread(target=run, args=(agent,)) for agent in range(len(keys))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


def test_agents_of_one_job_trust_each_other_and_share_a_secret() -> None:
    first, second = meet([KEY] * 3), meet([KEY] * 3)
    secrets: list[bytes] = []
    for outcomes in first, second:
        trusts = [one for one in outcomes if isinstance(one, Trust)]
        assert len(trusts) == 3
        told = {trust.secret("ranks") for trust in trusts}
        assert len(told) == 1
        secrets += told
        assert trusts[1].unseal("start", trusts[0].seal("start", b"text")) == b"text"
        with pytest.raises(NotOfTheJob):
            trusts[1].unseal("job", trusts[0].seal("start", b"text"))
    assert secrets[0] != secrets[1], "of the same key, at another time"


@pytest.mark.parametrize("other", [Key(b"x" * 32, "run"), Key(KEY.secret, "another run")])
def test_an_agent_with_another_key_or_of_another_run_is_named(other: Key) -> None:
    outcomes = meet([KEY, KEY, other])
    for outcome in outcomes[:2]:
        assert isinstance(outcome, str)
        assert outcome.startswith("the agents on node2 do not know the job's key")
    assert isinstance(outcomes[2], str) and "do not know the job's key" in outcomes[2]


def test_an_agent_that_sends_back_what_it_hears_is_refused() -> None:
    """It has no key and sends agent 0's nonce and proof as its own."""

    def reflect(said: list[bytes]) -> list[bytes]:
        return [said[0], said[0]]

    outcomes = meet([KEY, Key(b"x" * 32, "run")], reflect)
    assert isinstance(outcomes[0], str) and "the agents on node1 do not know" in outcomes[0]


def test_an_agent_that_repeats_an_earlier_meeting_is_refused() -> None:
    earlier: list[bytes] = []

    def note(said: list[bytes]) -> list[bytes]:
        earlier.append(said[1])
        return said

    assert all(isinstance(one, Trust) for one in meet([KEY, KEY], note))
    again = iter(earlier)
    outcomes = meet([KEY, KEY], lambda said: [said[0], next(again)])
    assert isinstance(outcomes[0], str) and "the agents on node1 do not know" in outcomes[0]


def test_a_changed_job_is_refused() -> None:
    sealed = KEY.seal("job", b'{"argv": ["train.py"]}')
    assert KEY.unseal("job", sealed) == b'{"argv": ["train.py"]}'
    for changed in sealed.replace(b"train", b"taken"), sealed[:10], b"", sealed + b" ":
        with pytest.raises(NotOfTheJob, match="has changed the job"):
            KEY.unseal("job", changed)


def test_the_variables_that_mpiexec_gets() -> None:
    ours = {"PATH": "/bin", "LC_ALL": "C", "HYDRA_DEBUG": "1", "PBS_JOBID": "7", "FI_X": "y"}
    users = {"API_TOKEN": "t", "AWS_SECRET_ACCESS_KEY": "s", "RDMACOLL_SECRET_FILE": "f"}
    assert mpi_environment(ours | users) == ours
    slurm = {"SLURM_JOB_ID": "7", "SLURM_CPU_BIND": "cores", "SLURM_CPUS_PER_TASK": "2"}
    step = {"SLURM_CPU_BIND": "none", "SLURM_OVERLAP": "1"}
    assert mpi_environment(slurm) == {"SLURM_JOB_ID": "7", **step}


def test_remote_shell() -> None:
    assert remote_shell({}) == ["ssh", "-x"]
    assert remote_shell({"HYDRA_LAUNCHER_EXEC": "/opt/my ssh".replace(" ", "-")}) == ["/opt/my-ssh"]
    assert remote_shell({"OMPI_MCA_plm_rsh_agent": "/usr/bin/ssh -q : rsh"}) == [
        *("/usr/bin/ssh", "-q", "-x")
    ]


def stand_in(jobs: Jobs, on_b: str = ":") -> dict[str, str]:
    """The variables that make mpiexec and rdmarun use the stand-in for ssh."""
    path = jobs.folder / "ssh"
    path.write_text(SSH.format(calls=jobs.folder / "calls", on_b=on_b))
    path.chmod(0o755)
    return {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": str(path)}


def calls(jobs: Jobs) -> list[str]:
    return (jobs.folder / "calls").read_text().splitlines()


def key_holders(jobs: Jobs) -> list[psutil.Process]:
    return [p for p in jobs.processes() if "key_holder" in " ".join(command_of(p))]


def test_only_the_ranks_get_the_users_environment(jobs: Jobs) -> None:
    """mpiexec, its proxies and the agents have none of it, nor has any command line."""
    token = "token-of-the-user"
    job = jobs.start(*TWO_HOSTS, jobs.script(STAY), API_TOKEN=token, **stand_in(jobs))
    assert job.stdout is not None
    try:
        wait_for(lambda: len(jobs.files("up.*")) == 2, "the ranks")
        wait_for(lambda: not key_holders(jobs), "the end of the key holders")
        without = 0
        for process in jobs.processes():
            folder = Path(f"/proc/{process.pid}")
            assert token.encode() not in (folder / "cmdline").read_bytes()
            is_ranks = process.pid == job.pid or any("script.py" in a for a in process.cmdline())
            if not is_ranks:
                assert token.encode() not in (folder / "environ").read_bytes(), process.cmdline()
                without += 1
        assert without >= 7  # mpiexec, two proxies, keepers and agents
    finally:
        (jobs.folder / "enough").touch()
        out, err = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0, err
    assert sorted(out.splitlines()) == [f"[{rank}]: {token}" for rank in range(2)]
    assert sum("key_holder" in call for call in calls(jobs)) == 2


def test_an_agent_with_another_key_stops_the_start(jobs: Jobs) -> None:
    other = 'read -r key; (echo 00$key; cat) | bash -c "$*"; exit'
    done = jobs.run(*TWO_HOSTS, jobs.script("open('ran', 'w')"), **stand_in(jobs, other))
    assert done.returncode != 0
    assert "the agents on nodeA and nodeB do not know the job's key both" in done.stderr
    assert not (jobs.folder / "ran").exists()


def test_a_host_that_ssh_does_not_reach_is_named(jobs: Jobs) -> None:
    done = jobs.run(*TWO_HOSTS, jobs.script("pass"), **stand_in(jobs, "exit 255"))
    assert done.returncode == 1
    assert "rdmarun: host nodeB: the job's key cannot be brought there: " in done.stderr
    assert (
        ": status 255; let ssh (or srun) start programs there, or set RDMACOLL_SECRET_FILE"
        in done.stderr
    )


def test_a_host_that_does_not_answer_is_named_at_the_deadline(jobs: Jobs) -> None:
    options = [*TWO_HOSTS, "--start-timeout", "2"]
    env = stand_in(jobs, "read -r key; cat; exit")
    done = jobs.run(*options, jobs.script("pass"), **env)
    assert done.returncode == 1
    assert "rdmarun: host nodeB: " in done.stderr
    assert "not within 2 s (--start-timeout)" in done.stderr


def test_an_agent_that_finds_no_key_says_where(jobs: Jobs) -> None:
    """A holder that says it is ready, and is none: as on another machine of the same name."""
    env = stand_in(jobs, "echo 'rdmarun: the key is held'; cat >/dev/null; exit")
    done = jobs.run(*TWO_HOSTS, jobs.script("pass"), **env)
    assert done.returncode != 0
    assert "rdmarun: host nodeB: rdmarun has left no key for the agent here" in done.stderr
    assert "RDMACOLL_SECRET_FILE" in done.stderr


@pytest.fixture
def secret_file(jobs: Jobs) -> Path:
    path = jobs.folder / "secret"
    path.write_bytes(os.urandom(32))
    path.chmod(0o600)
    return path


def test_a_job_with_a_secret_file_starts_no_key_holder(jobs: Jobs, secret_file: Path) -> None:
    script = jobs.script("print('ran')")
    env = stand_in(jobs) | {"RDMACOLL_SECRET_FILE": "secret"}
    done = jobs.run(*TWO_HOSTS, script, **env)
    assert (done.returncode, done.stdout.count("ran")) == (0, 2), done.stderr
    assert not any("key_holder" in call for call in calls(jobs))


def test_a_secret_file_that_is_refused(jobs: Jobs, secret_file: Path) -> None:
    for name, mode, says in (
        ("secret", 0o644, "is open to others than its owner"),
        ("missing", 0o600, "No such file or directory"),
        ("", 0o600, "names no file"),
    ):
        secret_file.chmod(mode)
        done = jobs.run(*TWO_AGENTS, jobs.script("pass"), RDMACOLL_SECRET_FILE=name)
        assert done.returncode == 1
        assert f"rdmarun: RDMACOLL_SECRET_FILE='{name}'" in done.stderr
        assert says in done.stderr


def test_an_agent_without_the_key_is_not_told_the_job(jobs: Jobs) -> None:
    """It takes the place of mpiexec and of agent 0, and notes what it hears."""
    heard = jobs.folder / "heard"
    heard.touch()  # it may be ended before it has opened the file
    thief = f"echo 'rdmarun: next {'0' * 64}'; exec /bin/cat >{heard}\n"
    done = jobs.run(*TWO_AGENTS, jobs.script("pass"), **bare_python(jobs, HYDRA + thief))
    assert done.returncode != 0
    assert "who asks for the job as its agent on localhost does not know the job's key" in (
        done.stderr
    )
    assert heard.read_bytes() == b""
