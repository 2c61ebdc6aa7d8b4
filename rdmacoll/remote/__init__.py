"""Remote memory: tensors of other processes, read and written where they lie.

A process exposes a tensor under a name; others of its job open it by that name and read or write
it, without its program's help and without a copy on the way:

    weights = remote.empty(1024, 1024)                 # on the owner
    remote.expose(weights, "weights")

    there = remote.open("weights", on=0)               # on another rank
    here = there[:128].read()

`publish` and `subscribe` do the same for a model's whole state, in versions of which nobody reads a
part. docs/REMOTE.md says what holds for rights, failures and memory.
"""

from .memory.devices import Device, device, lend
from .memory.errors import PeerError, RevokedError
from .memory.exposing import Exposure, empty, empty_like, expose
from .memory.mailboxes import Mailbox, Outbox, mailbox, open_mailbox
from .memory.opening import RemoteTensor, address, open
from .memory.process import stats
from .memory.works import RemoteWork
from .placement.graph import Crossing
from .placement.planning import Plan, plan
from .placement.tracing import Trace, trace
from .placement.transfers import Receiver, Sender
from .versions.publishing import Publication, publish
from .versions.subscribing import Subscription, subscribe

__all__ = [
    "Crossing",
    "Device",
    "Exposure",
    "Mailbox",
    "Outbox",
    "PeerError",
    "Plan",
    "Publication",
    "Receiver",
    "RemoteTensor",
    "RemoteWork",
    "RevokedError",
    "Sender",
    "Subscription",
    "Trace",
    "address",
    "device",
    "empty",
    "empty_like",
    "expose",
    "lend",
    "mailbox",
    "open",
    "open_mailbox",
    "plan",
    "publish",
    "stats",
    "subscribe",
    "trace",
]
