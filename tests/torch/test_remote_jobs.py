"""Remote memory between two jobs, which share a secret and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

LIMIT_S = 90
OWNER = """
import sys, time, pathlib, torch, torch.distributed as dist
from rdmacoll import remote
dist.init_process_group("rdma")
folder = pathlib.Path(sys.argv[1])
if dist.get_rank() == 1:
    w = remote.empty(1000, access="rw")
    w.copy_(torch.arange(1000))
    exposure = remote.expose(w, "w", access="rw")
    (folder / "new").write_text(remote.address())
    (folder / "new").rename(folder / "address")
    assert exposure.wait_notify(2, timeout=60) == 2
    assert (w[:10] == 7).all()
dist.barrier()
"""
OTHER = """
import sys, pathlib, torch, torch.distributed as dist
from rdmacoll import remote
dist.init_process_group("rdma")
at = pathlib.Path(sys.argv[1], "address").read_text()
try:
    there = remote.open("w", at=at, timeout=float(sys.argv[2]))
except (remote.PeerError, TimeoutError) as error:
    sys.exit(f"refused: {error}")
assert (there.read()[10:] == torch.arange(10, 1000)).all()
there[:10].write(torch.full((10,), 7.0), notify=int(sys.argv[3]))
print("read and written")
"""


def job(script: str, ranks: int, secret: Path, *arguments: str) -> subprocess.Popen[str]:
    rdmarun = Path(sys.executable).with_name("rdmarun")
    command = [str(rdmarun), "-np", str(ranks), sys.executable, "-c", script, *arguments]
    environment = {**os.environ, "RDMACOLL_SECRET_FILE": str(secret)}
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def secret(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text(f"the secret of {name} that nobody guesses\n")
    path.chmod(0o600)
    return path


def test_another_job_reads_and_writes_by_address(tmp_path: Path) -> None:
    ours, others = secret(tmp_path, "ours"), secret(tmp_path, "others")
    owner = job(OWNER, 2, ours, str(tmp_path))
    end = time.monotonic() + LIMIT_S
    while not (tmp_path / "address").exists() and owner.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    for number in ("1", "2"):  # one job after the other
        other = job(OTHER, 1, ours, str(tmp_path), "30", number)
        output, _ = other.communicate(timeout=LIMIT_S)
        assert other.returncode == 0, output
        assert "read and written" in output
        if number == "1":
            stranger = job(OTHER, 1, others, str(tmp_path), "3", "9")
            output, _ = stranger.communicate(timeout=LIMIT_S)
            assert stranger.returncode != 0
            assert "refused: " in output and "secret" in output, output
    output, _ = owner.communicate(timeout=LIMIT_S)
    assert owner.returncode == 0, output


SHARDED = """
import sys, pathlib, torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from rdmacoll import remote
dist.init_process_group("rdma")
folder = pathlib.Path(sys.argv[1])
mesh = init_device_mesh("cpu", (2,))
state = {"x": distribute_tensor(torch.arange(21.0).view(7, 3), mesh, [Shard(0)])}
published = remote.publish(state, "net")
published.update()
if dist.get_rank() == 1:
    (folder / "new").write_text(remote.address())
    (folder / "new").rename(folder / "address")
    done = remote.expose(remote.empty(1, access="rw"), "done", access="rw")
    done.wait_notify(1)
dist.barrier()
published.close()
"""
READER_OF_ALL = """
import sys, pathlib, torch, torch.distributed as dist
from rdmacoll import remote
dist.init_process_group("rdma")
at = pathlib.Path(sys.argv[1], "address").read_text()
there = remote.subscribe("net", at=at)
assert torch.equal(there.read(newer=True)["x"], torch.arange(21.0).view(7, 3))
try:
    there.read(newer=True, timeout=0.05)
except TimeoutError as error:
    assert "rank 0 of the owner's job had none" in str(error), error
    remote.open("done", at=at).write(torch.ones(1), notify=1)
"""


def test_a_state_that_is_sharded_there_is_read_by_the_address_of_one(tmp_path: Path) -> None:
    shared = secret(tmp_path, "shared")
    trainer = job(SHARDED, 2, shared, str(tmp_path))
    end = time.monotonic() + LIMIT_S
    while not (tmp_path / "address").exists() and trainer.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    for started in (job(READER_OF_ALL, 1, shared, str(tmp_path)), trainer):
        output, _ = started.communicate(timeout=LIMIT_S)
        assert started.returncode == 0, output
