"""Servers beside the ranks: where they are, what they see, how they end and are started again.

What runs in the place of rdmacoll.ps.serve is the tests' own, and imports no torch.
Floor: tests.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from job_runner import LIMIT_S, ONE_HOST, TWO_HOSTS, Jobs, both, wait_for

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# A server, up to its end: a file says that it is up.
SERVER = """
import json, os, signal, sys, time
number, start = os.environ["RDMACOLL_SERVER"], os.environ["RDMACOLL_SERVER_START"]
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(True))
with open("new." + number, "w") as file:
    json.dump([os.getpid(), dict(os.environ)], file)
os.rename("new." + number, f"up.{number}.{start}")
def wait():
    while not told:
        time.sleep(0.01)
"""
STAYS = SERVER + "wait(); print('told to end', flush=True)"

# A rank that waits for the files that its arguments name.
WAITS = """
import os, sys, time
until = time.monotonic() + 60
while not all(map(os.path.exists, sys.argv[1:])):
    assert time.monotonic() < until
    time.sleep(0.01)
"""


class Served:
    """Starts jobs with servers that run the text of a test."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        here = Path(__file__).parent
        shutil.copy(here / "server_stand_in.py", jobs.folder / "sitecustomize.py")
        shutil.copy(here / "client.py", jobs.folder)
        path = os.environ.get("PYTHONPATH")
        self._path = f"{jobs.folder}{os.pathsep}{path}" if path else str(jobs.folder)

    def run(
        self, server: str, rank: str, *options: str, waits: str = "", **env: str
    ) -> "subprocess.CompletedProcess[str]":
        """waits: the files that the script of the ranks is given as arguments."""
        args = self._args(server, rank, options, waits)
        return self.jobs.run(*args, PYTHONPATH=self._path, **env)

    def start(
        self, server: str, rank: str, *options: str, waits: str = ""
    ) -> "subprocess.Popen[str]":
        args = self._args(server, rank, options, waits)
        return self.jobs.start(*args, PYTHONPATH=self._path)

    def _args(self, server: str, rank: str, options: tuple[str, ...], waits: str) -> list[str]:
        (self.jobs.folder / "server.py").write_text(server)
        return [*options, self.jobs.script(rank), *waits.split()]

    def up(self, name: str) -> tuple[int, dict[str, str]]:
        """The process and the environment of a server that was up."""
        pid, env = json.loads((self.jobs.folder / name).read_text())
        return pid, env


@pytest.fixture
def served(jobs: Jobs) -> Served:
    return Served(jobs)


@both
def test_what_servers_and_ranks_see(served: Served, options: list[str]) -> None:
    rank = WAITS + "print(os.environ['WORLD_SIZE'], os.environ['RDMACOLL_SERVERS'], flush=True)"
    hosts = "0,1,0" if "-H" in options else "0,0,0"
    options = [*options, "--servers", "3", "--server-memory", "2G", "--server-replicas", "1"]
    options += ["-x", "USERS=own"]
    done = served.run(STAYS, rank, *options, waits="up.0.0 up.1.0 up.2.0")
    assert done.returncode == 0, done.stderr
    told = [f"[server {server}]: told to end" for server in range(3)]
    assert sorted(done.stdout.splitlines()) == ["[0]: 2 3", "[1]: 2 3", *told]
    assert "server" not in done.stderr
    for server in range(3):
        _, env = served.up(f"up.{server}.0")
        said = {name: value for name, value in env.items() if name.startswith("RDMACOLL_SERVER")}
        assert said == {
            "RDMACOLL_SERVER": str(server),
            "RDMACOLL_SERVERS": "3",
            "RDMACOLL_SERVER_START": "0",
            "RDMACOLL_SERVER_MEMORY": str(2 << 30),
            "RDMACOLL_SERVER_REPLICAS": "1",
            "RDMACOLL_SERVER_HOSTS": hosts,
        }
        assert (env["WORLD_SIZE"], env["USERS"], env["MASTER_ADDR"]) == ("2", "own", "127.0.0.1")
        assert env["MASTER_PORT"].isdecimal() and env["RDMACOLL_AGENT"].startswith("@")
        assert not any(name.startswith(("RANK", "LOCAL_", "GROUP_", "ROLE_")) for name in env)


@pytest.mark.parametrize(
    ("given", "placed"),
    [
        ([], ["localhost", "127.0.0.1", "localhost"]),
        (["--servers-on", "127.0.0.1"], ["127.0.0.1"] * 3),
        (["--servers-on", "127.0.0.1,localhost"], ["127.0.0.1", "localhost", "127.0.0.1"]),
    ],
    ids=["all", "one", "in this order"],
)
def test_servers_are_on_hosts_in_turn(served: Served, given: list[str], placed: list[str]) -> None:
    options = [*TWO_HOSTS, "--verbose", "--servers", "3", *given]
    done = served.run(STAYS, WAITS, *options, waits="up.0.0 up.1.0 up.2.0")
    assert done.returncode == 0, done.stderr
    for host in set(placed):
        on_host = [server for server in range(3) if placed[server] == host]
        pids = ", ".join(f"server {one} (pid {served.up(f'up.{one}.0')[0]})" for one in on_host)
        assert f"rdmarun: host {host}: {pids}\n" in done.stderr


def test_without_servers_nothing_says_so(served: Served) -> None:
    rank = "import os; print([name for name in os.environ if 'RDMACOLL_SERVER' in name])"
    outer = {"RDMACOLL_SERVERS": "9", "RDMACOLL_SERVER_START": "1"}  # of a job around this one
    done = served.run(STAYS, rank, "-np", "1", "--servers", "0", **outer)
    assert (done.stdout, done.returncode) == ("[0]: []\n", 0)


def test_output_files(served: Served) -> None:
    server = SERVER + "print('out'); print('err', file=sys.stderr); wait()"
    options = ["-np", "1", "--servers", "1", "--output-filename", "out", "--no-tag-output"]
    done = served.run(server, WAITS, *options, waits="up.0.0")
    assert (done.returncode, done.stdout) == (0, "out\n")
    files = {str(path): path.read_text() for path in served.jobs.files("out/server.0/*")}
    folder = served.jobs.folder / "out/server.0"
    assert files == {str(folder / "stderr"): "err\n", str(folder / "stdout"): "out\n"}


@both
def test_a_server_that_cannot_be_started_ends_the_job(served: Served, options: list[str]) -> None:
    (served.jobs.folder / "out").mkdir()
    (served.jobs.folder / "out/server.1").write_text("")
    rank = "import time; time.sleep(1000)"
    done = served.run(STAYS, rank, *options, "--servers", "2", "--output-filename", "out")
    assert done.returncode == 1
    assert "cannot start server 1: " in done.stderr and "server.1 is no folder" in done.stderr
    assert "Traceback" not in done.stderr


DIES = (
    SERVER
    + """
print("last words", start, file=sys.stderr, flush=True)
if number == "1" and int(start) < int(os.environ["DEATHS"]):
    os.kill(os.getpid(), signal.SIGKILL)
wait()
"""
)


@both
def test_a_lost_server_is_started_again(served: Served, options: list[str]) -> None:
    options = [*options, "--servers", "2", "--server-restarts", "2"]
    done = served.run(DIES, WAITS, *options, waits="up.0.0 up.1.2", DEATHS="2")
    assert done.returncode == 0, done.stderr
    host = "127.0.0.1" if "-H" in options else "localhost"
    for start in range(2):
        pid, _ = served.up(f"up.1.{start}")
        lines = [
            f"server 1 on {host} (pid {pid}) was killed by SIGKILL; the last lines of its stderr:",
            f"    last words {start}",
            f"starting server 1 again (restart {start + 1} of 2)",
        ]
        assert "".join(f"rdmarun: {line}\n" for line in lines) in done.stderr
    assert "server 0" not in done.stderr.replace("[server 0]", "")


def test_each_server_has_its_own_restarts(served: Served) -> None:
    server = SERVER + "if start == '0': sys.exit(3)\nwait()"
    options = ["-np", "1", "--servers", "2", "--server-restarts", "1"]
    done = served.run(server, WAITS, *options, waits="up.0.1 up.1.1")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("exited with status 3") == 2
    assert done.stderr.count("(restart 1 of 1)") == 2


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("0", "server 1 is not started again (--server-restarts 0); the job goes on without it"),
        ("1", "server 1 has had its 1 restarts (--server-restarts 1); the job goes on without it"),
    ],
)
def test_the_job_goes_on_without_a_server(served: Served, limit: str, says: str) -> None:
    """Also where no rank may be lost."""
    rank = (
        """
import os, sys, time
sys.argv[1:] = ["up.0.0", f"up.1.{os.environ['LIMIT']}"]
"""
        + WAITS
        + """
pid = int(open(sys.argv[2]).read().partition(",")[0][1:])
while os.path.exists(f"/proc/{pid}"):
    time.sleep(0.01)
time.sleep(0.5)  # for a launcher that ended the job
print("went on")
"""
    )
    options = ["-np", "1", "--servers", "2", "--server-restarts", limit]
    done = served.run(DIES, rank, *options, LIMIT=limit, DEATHS="5")
    assert done.returncode == 0, done.stderr
    assert "[0]: went on\n" in done.stdout
    assert f"rdmarun: {says}\n" in done.stderr


@both
def test_a_rank_that_fails_ends_the_servers(served: Served, options: list[str]) -> None:
    rank = WAITS + "if os.environ['RANK'] == '1': sys.exit(7)\ntime.sleep(1000)"
    done = served.run(STAYS, rank, *options, "--servers", "2", waits="up.0.0 up.1.0")
    assert done.returncode == 7
    assert done.stdout.count("told to end") == 2
    assert "server" not in done.stderr


@both
@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_signals_to_rdmarun(served: Served, options: list[str], sig: signal.Signals) -> None:
    rank = "import time; time.sleep(1000)"
    process = served.start(STAYS, rank, *options, "--servers", "2")
    wait_for(lambda: len(served.jobs.files("up.*")) == 2, "the servers")
    process.send_signal(sig)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 128 + sig
    assert out.count("told to end") == 2
    assert "server" not in err
    served.jobs.assert_none_left()


def test_ranks_that_clean_up_have_their_servers(served: Served) -> None:
    rank = """
import os, signal, sys, time
def clean_up(*_):
    time.sleep(0.5)
    pid = int(open("up.0.0").read().partition(",")[0][1:])
    os.kill(pid, 0)
    sys.exit(print("the server is there"))
signal.signal(signal.SIGINT, clean_up)
open("up.rank", "w")
time.sleep(1000)
"""
    process = served.start(STAYS, rank, "-np", "1", "--servers", "1")
    wait_for(lambda: len(served.jobs.files("up.*")) == 2, "the server and the rank")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=LIMIT_S)
    assert out.splitlines() == ["[0]: the server is there", "[server 0]: told to end"]


@both
def test_a_server_that_hangs_is_killed(served: Served, options: list[str]) -> None:
    server = SERVER + "wait()\nif number == '1': time.sleep(1000)"
    done = served.run(server, WAITS, *options, "--servers", "2", waits="up.0.0 up.1.0")
    assert done.returncode == 0
    pid, _ = served.up("up.1.0")
    host = "127.0.0.1" if "-H" in options else "localhost"
    assert (
        f"rdmarun: server 1 on {host} (pid {pid}) has not ended 5 s after SIGTERM, and is killed\n"
    ) in done.stderr
    assert done.stderr.count("rdmarun: server") == 1


def test_a_server_that_fails_at_its_end_is_named(served: Served) -> None:
    server = SERVER + "wait(); sys.exit('no room on the disk')"
    done = served.run(server, WAITS, "-np", "1", "--servers", "1", waits="up.0.0")
    assert done.returncode == 0
    pid, _ = served.up("up.0.0")
    said = f"rdmarun: server 0 on localhost (pid {pid}) exited with status 1; the last lines"
    assert said in done.stderr
    assert "rdmarun:     no room on the disk\n" in done.stderr


def test_when_the_agent_is_killed_servers_end(served: Served) -> None:
    rank = "import time; time.sleep(1000)"
    process = served.start(SERVER + "time.sleep(1000)", rank, *ONE_HOST, "--servers", "1")
    wait_for(lambda: len(served.jobs.files("up.*")) == 1, "the server")
    psutil.Process(served.up("up.0.0")[0]).parent().kill()
    process.communicate(timeout=LIMIT_S)
    assert process.returncode != 0
    served.jobs.assert_none_left()


@both
def test_all_are_started_anew_with_the_ranks(served: Served, options: list[str]) -> None:
    server = STAYS.replace('f"up.', "f\"up.{os.environ['TORCHELASTIC_RESTART_COUNT']}.")
    rank = (
        """
import os, sys
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
sys.argv[1:] = [f"up.{attempt}.0.0", f"up.{attempt}.1.0"]
"""
        + WAITS
        + "sys.exit(5 if attempt == '0' else 0)"
    )
    options = [*options, "--servers", "2", "--max-restarts", "1", "--output-filename", "out"]
    done = served.run(server, rank, *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("told to end") == 4
    ports = {served.up(f"up.{attempt}.0.0")[1]["MASTER_PORT"] for attempt in range(2)}
    assert len(ports) == 2
    assert (served.jobs.folder / "out/server.0/stdout").read_text() == "told to end\n" * 2


# A child of a server, and then that server.
CHILD = """
from client import *
from rdmacoll.base.agent_protocol import ask_identity
for magic in b"RDMACOL1", b"RDMACOLS":
    try:
        with connect() as sock:
            sock.sendall(hello(b"child's", magic=magic))
            answer(sock)
    except Refused as error:
        assert f"process {os.getpid()} is no rank that this agent" in str(error), error
    else:
        raise AssertionError(magic)
assert ask_identity(os.environ["RDMACOLL_AGENT"]) is None
"""
ASKS = (
    SERVER
    + """
import subprocess
from client import *
from rdmacoll.base.agent_protocol import ask_identity
which = ask_identity(os.environ["RDMACOLL_AGENT"])
assert (which.rank, which.helper, which.world) == (None, f"server {number}", 2), which
assert which.master_addr == os.environ["MASTER_ADDR"]
assert str(which.master_port) == os.environ["MASTER_PORT"]
for magic in b"RDMACOL1", b"RDMACOL0", b"RDMACOLJ":
    try:
        with connect() as sock:
            sock.sendall(hello(b"payload", rank=0, magic=magic))
            answer(sock)
    except Refused as error:
        assert f"process {os.getpid()} is server {number}, and no rank" in str(error), error
    else:
        raise AssertionError(magic)
without = {name: value for name, value in os.environ.items() if name != "RDMACOLL_SERVER"}
subprocess.run([sys.executable, "child.py"], env=without, check=True)
with open("new." + number, "wb") as file:
    file.write(secret())
os.rename("new." + number, "told." + number)
wait()
"""
)


@both
def test_a_server_is_told_the_secret_and_no_more(served: Served, options: list[str]) -> None:
    rank = (
        WAITS
        + """
from client import *
assert exchange(b"%d" % RANK) == [b"0", b"1"]
assert {secret()} == {open(name, "rb").read() for name in sys.argv[1:]}
"""
    )
    served.jobs.script(CHILD, "child.py")
    done = served.run(ASKS, rank, *options, "--servers", "2", waits="told.0 told.1")
    assert done.returncode == 0, done.stderr
