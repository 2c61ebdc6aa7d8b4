"""Two ranks that say they are on different hosts: what RDMACOLL_REQUIRE demands, and what is said
on both when one of them has no verbs. Run by rdmarun -np 2; all cases in one process per rank.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import torch
import torch.distributed as dist
from paths import backend


@dataclass(frozen=True)
class Case:
    """What each rank has in its environment, and the error (a pattern) or the path it must get."""

    name: str
    settings: tuple[dict[str, str], dict[str, str]]
    errors: tuple[str, str] | None = None
    path: str = ""


APART = ({"RDMACOLL_HOST_ID": "host0"}, {"RDMACOLL_HOST_ID": "host1"})
NOTHING = "no RDMA device.*RDMACOLL_HCA='none'"
NO_DEVICE = {"RDMACOLL_HCA": "none"}
REQUIRE = {"RDMACOLL_REQUIRE": "verbs"}


def apart(both: dict[str, str], second: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    return {**APART[0], **both}, {**APART[1], **both, **second}


REQUIRED = (
    "RDMACOLL_REQUIRE=verbs asks for verbs to host 'host1'.*the other process has it not open",
    "RDMACOLL_REQUIRE=verbs asks for verbs to host 'host0'.*RDMACOLL_HCA='none'",
)
CASES = (
    Case("verbs between hosts", apart(REQUIRE, {}), path="verbs"),
    Case("shm within a host", (REQUIRE, REQUIRE), path="shm"),
    Case("one side without a device", apart({}, NO_DEVICE), path="tcp"),
    Case("the same, and verbs is required", apart(REQUIRE, NO_DEVICE), errors=REQUIRED),
    Case(
        "the same, and verbs is forced",
        apart({"RDMACOLL_TRANSPORT": "verbs"}, NO_DEVICE),
        errors=(f"rank 1.*take part.*{NOTHING}", NOTHING),
    ),
    Case(
        "what is required is not allowed",
        apart({**REQUIRE, "RDMACOLL_TRANSPORT": "shm"}, {}),
        errors=("RDMACOLL_REQUIRE=verbs.*'host1'", "RDMACOLL_REQUIRE=verbs.*'host0'"),
    ),
)


def check(case: Case, store: dist.Store, rank: int) -> None:
    before = dict(os.environ)
    os.environ |= case.settings[rank]
    try:
        dist.init_process_group("rdma", store=store, rank=rank, world_size=2)
    except RuntimeError as error:
        assert case.errors, f"{case.name}: rank {rank} got {error}"
        assert re.search(case.errors[rank], str(error), re.DOTALL), f"{case.name}: {error}"
        print(f"{case.name}: refused", flush=True)
    else:
        assert case.errors is None, f"{case.name}: rank {rank} got no error"
        total = torch.ones(1000)
        dist.all_reduce(total)
        ((_, path, _),) = backend()._paths()
        assert (path, total[0].item()) == (case.path, 2), f"{case.name}: {path}, {total[0]}"
        dist.destroy_process_group()
        print(f"{case.name}: {path}", flush=True)
    os.environ.clear()
    os.environ.update(before)


def main() -> None:
    rank = int(os.environ["RANK"])
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(address, port, is_master=False)
    for number, case in enumerate(CASES):
        check(case, dist.PrefixStore(f"case{number}", store), rank)
        store.set(f"done{number}/{rank}", "")
        store.wait([f"done{number}/{1 - rank}"])  # nobody is in the next case yet


if __name__ == "__main__":
    main()
