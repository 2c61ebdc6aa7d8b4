"""Remote memory whose owner is cut off in the middle of every use: the reader raises and names the
owner, the owner drops what the reader had open, and who is on the owner's host goes on.

Floor: tests.
"""

from __future__ import annotations

import time

import pytest

from hosts.ranks import JOIN, Start
from hosts.stand import Host

EXPECTED_S = 4.0
TIMES = 10
OPTIONS = {"RDMACOLL_LOG_LEVEL": "error"}

# Rank 2 is on the other host.
ROLES = (
    JOIN
    + """
from rdmacoll import remote

ELEMENTS = 500_000
owner = 0
if rank == owner:
    for name, access in (("bytes", "r"), ("box", "rw")):
        memory = remote.empty(ELEMENTS, access=access)
        remote.expose(memory.fill_(1), name, access)
    model = remote.publish({"weight": torch.ones(ELEMENTS)}, name="model")
    model.update({"weight": torch.ones(ELEMENTS)})
else:
    there, box = remote.open("bytes", on=owner), remote.open("box", on=owner)
    model = remote.subscribe("model", on=owner)
    out = torch.zeros(ELEMENTS)
numbers = iter(range(1, 1 << 40))
phases = {
    "read": lambda: there.read(out),
    "rows": lambda: there[:1000].read_rows(list(range(0, 1000, 3))),
    "write": lambda: box.write(out, notify=next(numbers)),
    "fence": lambda: box.fence(),
    "open": lambda: remote.open("bytes", on=owner),
    "subscribe": lambda: model.read(),
    "device": lambda: remote.device(on=owner).empty(10),
}

def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)

dist.barrier()
if rank == owner:
    remote.lend(1 << 20)
    say("ready")
    until(lambda: test.poll())
    until(lambda: remote.stats()["openings"] == 3)  # the bystander's
    say("dropped")
    time.sleep(600)
elif rank == 1:
    say("ready")
    until(lambda: test.poll())
    assert there.read().eq(1).all()
    say("read")
    time.sleep(600)
use = phases["PHASE"]
use()
say("ready")
try:
    while True:
        use()
except remote.PeerError as error:
    say_error(error)
"""
)


@pytest.mark.parametrize("phase", ["read", "rows", "write", "fence", "open", "subscribe", "device"])
def test_a_cable_that_is_cut_in(start: Start, two_hosts: list[Host], phase: str) -> None:
    owner, bystander, reader = ranks = start("2+1", ROLES.replace("PHASE", phase), env=OPTIONS)
    for rank in ranks:
        rank.wait_for("ready")
    since = time.monotonic()
    two_hosts[1].cut()
    try:
        said = reader.wait_for("raised", TIMES * EXPECTED_S)
        assert "rank 0" in " ".join(said[2:])
        print(f"{phase}: the reader raised after {float(said[1]) - since:.2f} s")
        owner.tell()
        owner.wait_for("dropped", TIMES * EXPECTED_S)
        bystander.tell()
        bystander.wait_for("read")
    finally:
        two_hosts[1].heal()
