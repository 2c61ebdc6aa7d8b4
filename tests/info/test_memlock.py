"""The limit on locked memory: when it matters, and what is said then.

Floor: tests.
"""

from pathlib import Path

import pytest

from rdmacoll.info.memlock import Memlock, has_cap_ipc_lock

FIRST_NAMESPACE = "         0          0 4294967295\n"


@pytest.mark.parametrize(
    ("memlock", "text", "suffices"),
    [
        (Memlock(None, False), "unlimited", True),
        (Memlock(8 << 20, False), "8192 KiB", False),
        (Memlock(8 << 20, True), "8192 KiB, which CAP_IPC_LOCK lifts", True),
        (Memlock(4 << 30, False), "4194304 KiB", True),
    ],
)
def test_limit(memlock: Memlock, text: str, suffices: bool) -> None:
    assert str(memlock) == text
    assert memlock.suffices == suffices
    assert ("* hard memlock unlimited" in memlock.remedy) != suffices


@pytest.mark.parametrize(
    ("capabilities", "uid_map", "has"),
    [
        ("000001ffffffffff", FIRST_NAMESPACE, True),
        ("00000000a80425fb", FIRST_NAMESPACE, False),  # docker's
        ("000001ffffffffff", "         0       1000          1\n", False),  # a rootless container's
    ],
)
def test_capability(tmp_path: Path, capabilities: str, uid_map: str, has: bool) -> None:
    (tmp_path / "status").write_text(f"Name:\tpython\nCapEff:\t{capabilities}\nSeccomp:\t0\n")
    (tmp_path / "uid_map").write_text(uid_map)
    assert has_cap_ipc_lock(tmp_path) == has
