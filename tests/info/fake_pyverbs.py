"""A made-up pyverbs.device: as much of it as the listing asks.

Floor: tests.
"""

from types import SimpleNamespace, TracebackType
from typing import Any


class PyverbsError(Exception):
    pass


class Entry:
    """One of a GID table."""

    def __init__(self, port: int, index: int, address: str, gid_type: int) -> None:
        self.port_num, self.gid_index, self.gid_type, self.ndev_ifindex = port, index, gid_type, 1
        self._address = address

    def gid_str(self) -> str:
        return self._address


class Context:
    """An RDMA device that is open, with one port."""

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        pass

    def query_device(self) -> Any:
        return SimpleNamespace(fw_version="1.2.3")

    def query_port(self, number: int) -> Any:
        return SimpleNamespace(state=1, link_layer=2, active_mtu=3, max_mtu=5, gid_tbl_len=2)

    def query_gid_table(self, entries: int) -> list[Entry]:
        found = [Entry(1, 0, "fe80::1", 1), Entry(1, 1, "::ffff:10.0.0.2", 2)]
        assert len(found) <= entries
        return [*found, Entry(2, 0, "fe80::2", 2)]


class FakePyverbs:
    """Lists these devices, and opens all but those that are closed to us."""

    PyverbsError = PyverbsError

    def __init__(self, *names: str, closed: tuple[str, ...] = ()) -> None:
        self._names, self._closed = names, closed

    def get_device_list(self) -> list[Any]:
        if not self._names:
            raise PyverbsError("Failed to get devices list")
        return [SimpleNamespace(name=name.encode()) for name in self._names]

    def Context(self, name: str) -> Context:  # noqa: N802 (pyverbs' name)
        if name in self._closed:
            raise PyverbsError(f"Failed to open device {name}")
        return Context()
