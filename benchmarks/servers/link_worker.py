"""The processes of link.py and over_verbs.py: `measure ADDRESS` is a worker, which measures a round
for each line that it reads, also of gRPC if there is an address; `answer HOST` is the process that
gRPC asks."""

from __future__ import annotations

import json
import sys

import grpc
import torch
import torch.distributed as dist
from turns import timed

from rdmacoll import ps
from rdmacoll.bench.frame.grpc_ends import NO_LIMITS, Server, message, place

ELEMENTS = 4 << 20  # 16 MB
SERVICE = "rdmacoll.Link"
START_S = 240.0  # of a server, which imports torch: a minute where the processor is emulated

table = torch.zeros(ELEMENTS)


def _push(request: bytes, context: grpc.ServicerContext) -> bytes:
    table.sub_(torch.frombuffer(request, dtype=torch.float32))
    return b""


def _pull(request: bytes, context: grpc.ServicerContext) -> bytes:
    return message(table)


def answer(host: str) -> None:
    handlers = {
        "Push": grpc.unary_unary_rpc_method_handler(_push),
        "Pull": grpc.unary_unary_rpc_method_handler(_pull),
    }
    server = Server(SERVICE, handlers, threads=1, host=host)
    print(server.addresses[0], flush=True)
    sys.stdin.read()  # until link.py closes it
    server.close()


def measure(grpc_at: str) -> None:
    dist.init_process_group("rdma")
    kv = ps.KV(timeout=START_S)
    kv.init("table", torch.zeros(ELEMENTS), ps.SGD(lr=1.0))
    gradient, out, other = torch.ones(ELEMENTS), torch.empty(ELEMENTS), torch.empty(ELEMENTS)
    ways = {
        "push, servers": timed(lambda: kv.wait(kv.push("table", gradient))),
        "pull, servers": timed(lambda: kv.pull("table", out)),
    }
    if grpc_at:
        channel = grpc.insecure_channel(grpc_at, NO_LIMITS)
        push = channel.unary_unary(f"/{SERVICE}/Push")
        pull = channel.unary_unary(f"/{SERVICE}/Pull")
        ways["push, gRPC"] = timed(lambda: push(message(gradient)))
        ways["pull, gRPC"] = timed(lambda: place([pull(b"")], other))
    for _ in sys.stdin:
        print(json.dumps({name: way() for name, way in ways.items()}), flush=True)
        if grpc_at and not torch.equal(out, other):
            raise SystemExit("gRPC has pulled other values than the servers")
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"answer": answer, "measure": measure}[sys.argv[1]](sys.argv[2])
