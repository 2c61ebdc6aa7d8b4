"""A transport of torch.distributed._transport where something ends: an endpoint, a wait, a process;
and between processes that are in no group."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from cases import me
from harness import distributed
from test_torch_transport import LACKS, exchange, told, values

from rdmacoll import remote
from rdmacoll.remote.faces.torch_transport import RdmaTransport


@distributed(2, gloo_lacks=LACKS)
def test_what_is_closed() -> None:
    rank, _ = me()
    transport = RdmaTransport()
    transport.connect(exchange(transport.bind()))
    memory = transport.register_memory(remote.empty(10, access="rw"))
    there = told(memory.to_remote_buffer())
    view = memory.to_mutable_view()
    transport.read(view, there)
    dist.barrier()
    if rank == 0:
        transport.close()
    dist.barrier()
    if rank == 1:
        with pytest.raises(remote.RevokedError):
            transport.read(view, there)
        transport.close()
    transport.close()
    for use in (
        transport.bind,
        memory.to_remote_buffer,
        lambda: transport.connect(b""),
        lambda: transport.read(view, there),
        lambda: transport.register_memory(torch.ones(1)),
        lambda: transport.unregister_memory(memory),
    ):
        with pytest.raises(RuntimeError, match="closed"):
            use()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@distributed(2, init=False, gloo_lacks=LACKS, one_host=True)
def test_a_timeout_leaves_the_transfer_in_flight() -> None:
    """Over tcp, where the owner's process moves the bytes, and says that it has them."""
    rank = int(os.environ["RANK"])
    os.environ |= {"RDMACOLL_HOST_ID": f"host{rank}", "RDMACOLL_TRANSPORT": "tcp"}
    dist.init_process_group("rdma")
    transport = RdmaTransport()
    transport.connect(exchange(transport.bind()))
    target = remote.empty_like(values(0), access="rw")
    source = transport.register_memory(values(rank))
    there = told(transport.register_memory(target).to_remote_buffer())
    transport.write(source.to_view(0, 4), there)
    pid = exchange(os.getpid())
    if rank == 0:
        os.kill(pid, signal.SIGSTOP)
        try:
            while state_of(pid) != "T":
                time.sleep(0.001)
            work = transport.write(source.to_view(), there, async_op=True)
            with pytest.raises(TimeoutError):
                work.wait(timedelta(milliseconds=50))
            with pytest.raises(TimeoutError):
                transport.write(source.to_view(), there, timeout=0.05)
            with pytest.raises(TimeoutError):
                asyncio.run(transport.write_async(source.to_view(), there, timeout=0.05))
            assert not work.is_completed() and work.exception() is None
            with pytest.raises(RuntimeError, match="in flight"):
                transport.unregister_memory(source)
            with pytest.raises(TimeoutError):
                transport.close(timeout=0.05)
            with pytest.raises(RuntimeError, match="closed"):
                transport.write(source.to_view(), there)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert work.wait()
    dist.barrier()
    transport.close()
    if rank == 1:
        assert torch.equal(target, values(0))


@distributed(2, dies=(1,), gloo_lacks=LACKS)
def test_a_peer_that_is_killed() -> None:
    rank, _ = me()
    transport = RdmaTransport(timeout=20)
    transport.connect(exchange(transport.bind()))
    there = told(transport.register_memory(remote.empty(1 << 20, access="rw")).to_remote_buffer())
    local = transport.register_memory(torch.ones(1 << 20))
    transport.write(local.to_view(), there)
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(remote.PeerError):
        while True:
            transport.write(local.to_view(), there)
    with pytest.raises(remote.PeerError):
        asyncio.run(transport.read_async(local.to_mutable_view(), there))
    transport.close()


JOINS = """
import sys
sys.path.insert(0, sys.argv[1])
import transport_files
transport_files.provide()
import torch, torch.distributed as dist
from torch.distributed._transport import available_transports, new_transport_rank
from rdmacoll import remote
rank, store = int(sys.argv[3]), dist.FileStore(sys.argv[2], 2)
assert "rdmacoll" in available_transports()
with new_transport_rank("rdmacoll", "cpu", store=store, rank=rank, peer_rank=1 - rank) as transport:
    target = remote.empty(1000, access="rw", group=transport.group)
    store.set(f"memory{rank}", transport.register_memory(target).to_remote_buffer().serialize())
    there = type(transport.register_memory(target).to_remote_buffer()).deserialize(
        store.get(f"memory{1 - rank}")
    )
    transport.write(transport.register_memory(torch.full((1000,), 1.0 + rank)).to_view(), there)
    store.set(f"written{rank}", b"")
    store.get(f"written{1 - rank}")
    assert (target == 2 - rank).all()
    assert not dist.is_initialized()
    store.set(f"done{rank}", b"")
    store.get(f"done{1 - rank}")
print("joined")
"""


def start(folder: Path, rank: int, **environment: str) -> subprocess.Popen[str]:
    arguments = [str(Path(__file__).parent), str(folder / "store"), str(rank)]
    return subprocess.Popen(
        [sys.executable, "-c", JOINS, *arguments],
        env={**os.environ, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def test_processes_without_a_group(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("what both of them know and nobody guesses\n")
    secret.chmod(0o600)
    both = [start(tmp_path, rank, RDMACOLL_SECRET_FILE=str(secret)) for rank in range(2)]
    for process in both:
        output, _ = process.communicate(timeout=90)
        assert process.returncode == 0 and "joined" in output, output


def test_a_process_without_group_and_secret_is_told(tmp_path: Path) -> None:
    process = start(tmp_path, 0)
    output, _ = process.communicate(timeout=90)
    assert process.returncode != 0
    assert "no secret that the peer could know" in output, output
