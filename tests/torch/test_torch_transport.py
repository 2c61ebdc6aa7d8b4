"""rdmacoll as a transport of torch.distributed._transport: two endpoints that know no ranks."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import inspect
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.distributed as dist
import transport_files
from cases import me
from harness import distributed

from rdmacoll import remote

transport_files.provide()
from torch.distributed._transport import (  # noqa: E402
    Memory,
    MemoryView,
    MutableMemoryView,
    RemoteBuffer,
    Transport,
    wait_all,
)

from rdmacoll.remote.faces.torch_transport import RdmaRemoteBuffer, RdmaTransport  # noqa: E402

LACKS = "is no transport"
ELEMENTS = 100_003


def values(rank: int) -> torch.Tensor:
    return torch.arange(ELEMENTS, dtype=torch.int32) * 3 + rank


def exchange(own: Any) -> Any:
    """What the other rank gives, by a way that is not the transport's."""
    everything: list[Any] = [None, None]
    dist.all_gather_object(everything, own)
    return everything[1 - me()[0]]


def told(buffer: RdmaRemoteBuffer) -> RdmaRemoteBuffer:
    return RdmaRemoteBuffer.deserialize(exchange(buffer.serialize()))


@contextlib.contextmanager
def connected(**options: Any) -> Iterator[RdmaTransport]:
    with RdmaTransport("cpu", **options) as transport:
        assert not transport.connected()
        assert transport.connect(exchange(transport.bind())) == 0
        assert transport.connected()
        yield transport
        dist.barrier()  # the other may be at it


@distributed(2, gloo_lacks=LACKS)
def test_writes_and_reads() -> None:
    rank, _ = me()
    with connected() as transport:
        target = remote.empty_like(values(0), access="rw")
        source = transport.register_memory(values(rank))  # in ordinary memory
        there = told(transport.register_memory(target).to_remote_buffer())
        assert transport.write(source.to_view(), there) == 0
        dist.barrier()
        assert torch.equal(target, values(1 - rank))

        back = transport.register_memory(torch.zeros_like(target))
        assert transport.read(back.to_mutable_view(), there) == 0
        assert torch.equal(back.registration.tensor, values(rank))
        dist.barrier()

        # The beginning of the remote memory, and any part of the local one.
        assert transport.write(source.to_view(40, 8), there) == 0
        assert transport.write(source.to_view(0, 0), there) == 0
        dist.barrier()
        assert target[:2].tolist() == values(1 - rank)[10:12].tolist()
        assert torch.equal(target[2:], values(1 - rank)[2:])


@distributed(2, gloo_lacks=LACKS)
def test_works_and_event_loops() -> None:
    rank, _ = me()
    with connected() as transport:
        target = remote.empty_like(values(0), access="rw")
        source = transport.register_memory(values(rank))
        there = told(transport.register_memory(target).to_remote_buffer())
        back = transport.register_memory(torch.zeros_like(target))
        written = transport.write(source.to_view(), there, async_op=True)
        assert isinstance(written, dist.Work)
        assert written.wait() and written.is_completed() and written.is_success()
        assert written.exception() is None and written.result() == []
        read = transport.read(back.to_mutable_view(), there, async_op=True)
        assert read.get_future().wait() == []
        assert torch.equal(back.registration.tensor, values(rank))

        async def many() -> None:
            back.registration.tensor.zero_()
            await transport.write_async(source.to_view(), there)
            await transport.read_async(back.to_mutable_view(), there)
            assert torch.equal(back.registration.tensor, values(rank))
            views = [source.to_view(0, 4 * n) for n in range(1, 20)]
            await wait_all(transport.write(view, there, async_op=True) for view in views)

        asyncio.run(many())
        dist.barrier()
        asyncio.run(transport.close_async())
        assert not transport.connected()


@distributed(2, gloo_lacks=LACKS)
def test_registrations() -> None:
    with connected() as transport:
        tensor = remote.empty(64, dtype=torch.uint8, access="rw")
        memory, alias = (transport.register_memory(tensor) for _ in range(2))
        assert isinstance(memory, Memory)
        assert isinstance(memory.to_view(), MemoryView)
        assert not isinstance(memory.to_view(), MutableMemoryView)
        assert isinstance(memory.to_mutable_view(), MutableMemoryView)
        assert (memory.to_view(16).size(), memory.to_view(16, 8).size()) == (48, 8)
        assert isinstance(memory.to_remote_buffer(), RemoteBuffer)
        assert memory.to_remote_buffer() == alias.to_remote_buffer()
        for wrong in ((65, None), (-1, None), (0, 65), (60, 5), (0, -1)):
            with pytest.raises(ValueError, match="outside|exceeds"):
                memory.to_view(*wrong)
        view, before = memory.to_view(), memory.to_remote_buffer()
        there = told(before)
        transport.unregister_memory(memory)
        transport.unregister_memory(alias)  # it is the same, and gone
        for use in (alias.to_view, alias.to_mutable_view, alias.to_remote_buffer):
            with pytest.raises(RuntimeError, match="unregistered"):
                use()
        with pytest.raises(RuntimeError, match="unregistered"):
            transport.write(view, there)
        fresh = transport.register_memory(tensor)
        assert fresh.to_remote_buffer() != before
        transport.write(fresh.to_view(), told(fresh.to_remote_buffer()))
        dist.barrier()
        tensor.set_(torch.zeros(64, dtype=torch.uint8))
        with pytest.raises(RuntimeError, match="replaced"):
            fresh.to_remote_buffer()


@distributed(2, gloo_lacks=LACKS)
def test_memory_that_is_taken_back() -> None:
    with connected() as transport:
        memory = transport.register_memory(remote.empty(1000, access="rw"))
        there = told(memory.to_remote_buffer())
        local = transport.register_memory(torch.ones(1000))
        transport.write(local.to_view(), there)
        dist.barrier()
        transport.unregister_memory(memory)
        dist.barrier()
        with pytest.raises(remote.RevokedError):
            transport.write(local.to_view(), there)
        work = transport.read(local.to_mutable_view(), there, async_op=True)
        with pytest.raises(remote.RevokedError):
            work.get_future().wait()
        assert work.is_completed() and not work.is_success()
        assert isinstance(work.exception(), remote.RevokedError)


@distributed(2, gloo_lacks=LACKS)
def test_bad_input() -> None:
    with pytest.raises(ValueError, match="on the CPU"):
        RdmaTransport("cuda:0")
    for timeout in (-1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="timeout"):
            RdmaTransport(timeout=timeout)
    with connected() as transport:
        with pytest.raises(RuntimeError, match="connected already"):
            transport.connect(transport.bind())
        with pytest.raises(TypeError, match="tensor is a list"):
            transport.register_memory([1, 2])
        with pytest.raises(ValueError, match="not contiguous"):
            transport.register_memory(torch.zeros(4, 4).t())
        with pytest.raises(ValueError, match="no elements"):
            transport.register_memory(torch.zeros(0))
        with pytest.raises(ValueError, match="on meta"):
            transport.register_memory(torch.zeros(4, device="meta"))
        ordinary = transport.register_memory(torch.zeros(16))
        with pytest.raises(ValueError, match="remote.empty"):
            ordinary.to_remote_buffer()

        there = told(transport.register_memory(remote.empty(8, access="rw")).to_remote_buffer())
        readable = told(transport.register_memory(remote.empty(16)).to_remote_buffer())
        for wrong in (torch.zeros(8), ordinary, None):
            with pytest.raises(TypeError, match="local_buffer"):
                transport.write(wrong, there)
        with pytest.raises(TypeError, match="local_buffer"):
            transport.read(ordinary.to_view(), there)  # one must be asked for that is written
        with pytest.raises(TypeError, match="remote_buffer"):
            transport.write(ordinary.to_view(), there.serialize())
        with pytest.raises(ValueError, match="does not fit"):
            transport.write(ordinary.to_view(), there)
        with pytest.raises(ValueError, match="for reading"):
            transport.write(ordinary.to_view(), readable)
        assert transport.read(ordinary.to_mutable_view(), readable) == 0
        with pytest.raises(ValueError, match="not of the peer"):
            transport.read(ordinary.to_mutable_view(), replace(readable, owner="another"))
        with pytest.raises(ValueError, match="timeout"):
            transport.read(ordinary.to_mutable_view(), readable, timeout=-1)
        with pytest.raises(ValueError):  # what it says of itself does not count
            transport.write(ordinary.to_view(), replace(readable, writable=True))
        with pytest.raises(ValueError):
            transport.read(ordinary.to_mutable_view(), replace(there, length=64))
        with RdmaTransport() as other:
            with pytest.raises(ValueError, match="not of the peer"):
                other.write(other.register_memory(torch.ones(2)).to_view(), there)
            with pytest.raises(TypeError, match="not registered by this transport"):
                other.unregister_memory(ordinary)


@distributed(2, gloo_lacks=LACKS)
def test_bytes_that_make_no_sense() -> None:
    good = RdmaRemoteBuffer("owner", "name", 1, True).serialize()
    assert RdmaRemoteBuffer.deserialize(good) == RdmaRemoteBuffer("owner", "name", 1, True)
    for wrong in (
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        good[:-1],
        good.replace(b'"rdmacoll": 1', b'"rdmacoll": 2'),
        good.replace(b'"length": 1', b'"length": -1'),
        good.replace(b'"length": 1', b'"length": true'),
        good.replace(b"owner", b"another", 1),
    ):
        with pytest.raises(ValueError, match="nothing that rdmacoll"):
            RdmaRemoteBuffer.deserialize(wrong)
    with pytest.raises(TypeError, match="give bytes"):
        RdmaRemoteBuffer.deserialize("text")  # type: ignore[arg-type]
    with RdmaTransport() as transport, RdmaTransport() as other:
        with pytest.raises(ValueError, match="nothing that rdmacoll"):
            transport.connect(good)
        url = other.bind()
        with pytest.raises(ValueError, match="is no address"):
            transport.connect(url.replace(b'"address": "', b'"address": "~'))
        other.close()
        with pytest.raises(TimeoutError):
            transport.connect(url, timeout=0.2)  # the process is there, the transport has gone


@distributed(2, gloo_lacks=LACKS)
def test_two_in_one_process() -> None:
    with RdmaTransport() as first, RdmaTransport() as second:
        first.connect(second.bind())
        target = remote.empty_like(values(0), access="rw")
        there = second.register_memory(target).to_remote_buffer()
        assert first.write(first.register_memory(values(7)).to_view(), there) == 0
        assert torch.equal(target, values(7))


def test_the_entry_point() -> None:
    (found,) = importlib.metadata.entry_points(
        group="torch.distributed.transports", name="rdmacoll"
    )
    assert found.load() is RdmaTransport
    assert RdmaTransport.supported() and not RdmaTransport.__abstractmethods__


def test_the_calls_are_torchs() -> None:
    for name, ours in vars(RdmaTransport).items():
        theirs = getattr(Transport, name, None)
        if name.startswith("_") or not inspect.isfunction(theirs):
            continue
        assert list(inspect.signature(ours).parameters) == list(
            inspect.signature(theirs).parameters
        ), name


def test_an_older_torch_is_named() -> None:
    script = (
        "import sys; sys.modules['torch.distributed._transport'] = None; "
        "import rdmacoll.remote; import rdmacoll.remote.faces.torch_transport"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "ImportError" in done.stderr and "torch 2.15" in done.stderr, done.stderr
