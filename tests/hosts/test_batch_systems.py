"""rdmarun in the environments that PBS and LSF document, on two hosts: these have not been run.

Slurm, which has, is in tests/slurm; the formats are in tests/launcher/test_allocation.py.
Floor: tests.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from hosts.stand import Host

RDMARUN = [sys.executable, "-m", "rdmacoll.launcher"]
WHERE = """
import os, socket
print(os.environ["RANK"], os.environ["WORLD_SIZE"], socket.gethostname())
"""


def check_three_ranks(host: Host, folder: Path, command: list[str], env: dict[str, str]) -> str:
    script = folder / "script.py"
    script.write_text(WHERE)
    done = host.run(*command, *RDMARUN, str(script), env=env)
    assert done.returncode == 0, done.stdout
    for where in ("0 3 nodeA", "1 3 nodeA", "2 3 nodeB"):
        assert where in done.stdout, done.stdout
    return done.stdout


def test_pbs_by_ssh(two_hosts: list[Host], tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    nodes.write_text("nodeA\nnodeA\nnodeB\n")
    env = {"PBS_JOBID": "7.server", "PBS_NODEFILE": str(nodes), "PBS_ENVIRONMENT": "PBS_BATCH"}
    said = check_three_ranks(two_hosts[0], tmp_path, [], env)
    assert "rdmarun: hosts from PBS job 7.server: nodeA:2, nodeB:1\n" in said


def test_lsf_by_blaunch(two_hosts: list[Host], tmp_path: Path) -> None:
    """MPICH takes blaunch by itself, and the key goes the same way. The stand's ssh is called so
    here: it reads its options, and blaunch documents that it is called as ssh."""
    shown = two_hosts[0].run("sh", "-c", 'echo "$HYDRA_LAUNCHER_EXEC"')
    shutil.copy(shown.stdout.strip(), tmp_path / "blaunch")
    env = {"LSB_JOBID": "9", "LSB_MCPU_HOSTS": "nodeA 2 nodeB 1", "LSF_BINDIR": str(tmp_path)}
    command = ["env", "-u", "HYDRA_LAUNCHER_EXEC"]
    said = check_three_ranks(two_hosts[0], tmp_path, command, env)
    assert "rdmarun: hosts from LSF job 9: nodeA:2, nodeB:1\n" in said
