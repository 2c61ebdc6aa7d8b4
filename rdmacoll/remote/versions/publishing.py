"""A model's state in versions, as its ranks publish it. subscribing.py has the readers' side.

The state lies there twice, so a reader reads one version while the next is being written, and the
writer waits for nobody (csrc/remote/statement.h). Of a sharded state each rank publishes its part.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

from ..memory.checks import check_name, check_timeout
from ..memory.kind import Kind, kind_of
from ..memory.opening import DEFAULT_TIMEOUT_S
from ..memory.process import backend, face
from .sharding import State, form_of, local_of, mesh_of, on_all, part_of
from .table import Table, Told, table_name


class Publication:
    """A state that this process publishes, or its part of one. As publish() makes it."""

    def __init__(
        self, name: str, state: State, dtype: torch.dtype | None, group: dist.ProcessGroup | None
    ) -> None:
        self.name = name
        self._state = dict(state)
        self._face = face(group)
        self._exposed: list[str] = []
        mesh = mesh_of(state)
        told = on_all(mesh, lambda: _tell(state, dtype, group))
        self._forms = {key: form_of(tensor) for key, tensor in state.items()}
        table = Table.of(told)
        own = [its.rank for its in told].index(dist.get_rank())
        self._layout = table.layout_of(own)
        self._is_alone = len(told) == 1
        self._is_behind = False  # others may have published a version that this rank has not
        try:
            on_all(mesh, lambda: self._expose(table.encode()))
        except Exception:
            self.close(DEFAULT_TIMEOUT_S)
            raise

    @property
    def version(self) -> int:
        """The newest; 0: update() was not called yet."""
        return self._versions.version

    def update(self, state: State | None = None) -> int:
        """Publishes what the tensors hold now, as the next version; returns its number.

        state: other tensors of the same names, shapes and placements; None: those that publish()
        was given. Who reads gets this version whole, or the one before it. One thread at a time.
        It waits for no other rank. Each counts its versions, and a reader puts together parts of
        one number: all ranks of a sharded state call this at the same steps.
        Raises ValueError for a state of another form, before anything is published. If it raises on
        a rank of several, that rank does not know what the others have published: it raises from
        then on, until the state is closed and published anew.
        """
        state = self._state if state is None else state
        if self._is_behind:
            raise ValueError(
                f"version {self.version + 1} of {self.name!r} failed on this rank, and others may "
                "have published it; close() it on all of them, and publish() anew"
            )
        self._is_behind = not self._is_alone
        self._check(state)
        memory = self._versions.begin()
        with torch.no_grad():
            for key in self._layout.kinds:
                self._layout.view(memory, key).copy_(local_of(state[key]))
        version = self._versions.complete()
        self._is_behind = False
        return version

    def close(self, timeout: float = 10.0) -> None:
        """Publishes no more: who subscribes gets RevokedError. timeout: in seconds, for readers."""
        check_timeout(timeout)
        for name in reversed(self._exposed):
            self._face.revoke(name, timeout)

    def _expose(self, text: bytes) -> None:
        self._versions = self._face.publish(self.name, max(self._layout.bytes, 1), "")
        self._exposed.append(self.name)
        described = self._face.allocate(len(text), False)
        described.copy_(torch.frombuffer(bytearray(text), dtype=torch.uint8))
        name = table_name(self.name)
        self._face.expose(name, described, False, kind_of(described).encode())
        self._exposed.append(name)

    def _check(self, state: State) -> None:
        if set(state) != set(self._forms):
            different = sorted(set(state) ^ set(self._forms))
            raise ValueError(f"state has other names than were published: {different[:5]}")
        for key, form in self._forms.items():
            if form_of(state[key]) != form:
                raise ValueError(f"state[{key!r}] is {form_of(state[key])}; {form} was published")


def publish(
    state: State,
    name: str,
    dtype: torch.dtype | None = None,
    group: dist.ProcessGroup | None = None,
) -> Publication:
    """Lets all of the job read this state in versions; the first comes with update().

    state: tensors by name, as state_dict() gives them; they stay where they are, and update() reads
    them. dtype: of what is published; None: each tensor's own. It takes twice the state's bytes of
    memory. group: by which others are reached; None is the default group.

    A state with DTensors is published by all ranks of their mesh together (the largest, if there
    are several): each calls this, which gathers over the mesh who has what. Each rank publishes its
    shards; what several ranks have, replicas and plain tensors, the first of them publishes.

    Raises ValueError for a name that is taken, for tensors that are not dense on the CPU, and for
    placements with Partial; where it does on one rank of a mesh, it does on all.
    """
    check_name(name)
    return Publication(name, state, dtype, group)


def _tell(state: State, dtype: torch.dtype | None, group: dist.ProcessGroup | None) -> Told:
    parts = {key: part_of(f"state[{key!r}]", tensor) for key, tensor in state.items()}
    kinds = {key: Kind(dtype or tensor.dtype, tuple(tensor.shape)) for key, tensor in state.items()}
    of_group = backend(group)
    address = of_group._address_of(of_group.rank())
    assert address is not None
    return Told(dist.get_rank(), address, {key: (kinds[key], parts[key]) for key in state})
