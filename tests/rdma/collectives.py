"""What tests/torch checks, over an RDMA device: many exact tests in one process per rank.

    RDMACOLL_TRANSPORT=verbs rdmarun -np 2 tests/rdma/collectives.py [test_p2p ...]

torch takes up to a minute to import on an emulated processor, so no test gets processes of its own:
those that are written for a world of this size and leave it usable run one after the other. The
first failure ends the rank with status 1, and so the job.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import itertools
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "torch"))

from parts import Part, part
from paths import NO_DEVICE, check_paths, places_by_rank
from steady_state import check_steady_state
from world import run_body  # type: ignore[import-not-found]

MODULES = (
    *("test_all_reduce", "test_reduce", "test_broadcast", "test_all_gather", "test_gather_scatter"),
    *("test_reduce_scatter", "test_all_to_all", "test_barrier", "test_p2p", "test_coalesced"),
    *("test_async", "test_objects", "test_sparse", "test_groups", "test_remote"),
    *("test_remote_rows", "test_remote_atomics"),
)
# Too slow where the processor is emulated: millions of elements of every type, thousands of calls,
# torch's compiler. They say nothing of the transport that the others do not.
TOO_SLOW = (
    *("test_every_type_and_operation", "test_every_type_and_operation_large", "test_every_type"),
    *("test_every_type_operation_and_root", "test_large_every_type", "test_functional"),
)
ONE_CLOCK = ("test_barrier", "test_monitored_barrier")  # compare the times of ranks
TIMEOUT = timedelta(seconds=120)
TEST_LIMIT_S = 300

Test = tuple[str, dict[str, Any]]


def tests_of(module: str, world: int, one_clock: bool) -> Iterator[Test]:
    """The tests of a module of tests/torch that this world can run, with their arguments."""
    left_out = TOO_SLOW if one_clock else TOO_SLOW + ONE_CLOCK
    for name, test in vars(importlib.import_module(module)).items():
        if name in left_out or not getattr(test, "leaves_world_usable", False):
            continue
        for arguments in arguments_of(test):
            if arguments.pop("world_size") == world:
                yield name, arguments


def arguments_of(test: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """Every combination of the test's parameters, as pytest would make them."""
    marks = [mark.args for mark in test.pytestmark]  # type: ignore[attr-defined]
    for values in itertools.product(*(choices for _, choices, *_ in marks)):
        yield dict(zip((name for name, *_ in marks), values, strict=True))


def run_tests(tests: list[Test], module: str) -> None:
    """SystemExit at the first that fails."""
    for name, arguments in tests:
        faulthandler.dump_traceback_later(TEST_LIMIT_S, exit=True)
        outcome = run_body(module, name, arguments)
        faulthandler.cancel_dump_traceback_later()
        if outcome.kind != "ok":  # a test that skips itself shows nothing
            raise SystemExit(f"{module}.{name}{arguments or ''} {outcome.kind}: {outcome.text}")


def say(text: str) -> None:
    if dist.get_rank() == 0:
        print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=1, help="that the ranks must be on")
    parser.add_argument("--pretend-hosts", type=int, help="so many, of consecutive ranks")
    parser.add_argument("--no-device", action="store_true", help="on the last pretended host")
    parser.add_argument("--part", type=part, default=Part(), metavar="K/N", help="of the modules")
    parser.add_argument("modules", nargs="*", default=MODULES, help="of tests/torch")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # what torch thinks of its own names
    began = time.monotonic()
    if options.pretend_hosts:
        host = int(os.environ["RANK"]) * options.pretend_hosts // int(os.environ["WORLD_SIZE"])
        os.environ["RDMACOLL_HOST_ID"] = f"pretended{host}"
        if options.no_device and host == options.pretend_hosts - 1:
            os.environ |= NO_DEVICE
    dist.init_process_group("rdma", timeout=TIMEOUT)
    places = places_by_rank()
    hosts = {place.host for place in places}
    assert len(hosts) == options.hosts, f"the ranks are on {hosts}, not {options.hosts} hosts"
    print(f"paths: {check_paths(places)}", flush=True)
    say(f"steady state: {check_steady_state()}")
    one_clock = len({place.boot_id for place in places}) == 1
    total = 0
    for module in options.part.of(options.modules):
        since = time.monotonic()
        tests = list(tests_of(module, len(places), one_clock))
        run_tests(tests, module)
        say(f"{module}: {len(tests)} passed in {time.monotonic() - since:.1f} s")
        total += len(tests)
    dist.destroy_process_group()
    print(f"{total} tests passed in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
