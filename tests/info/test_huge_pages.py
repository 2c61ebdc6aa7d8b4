"""What is said of huge pages for shared memory."""

from pathlib import Path

import pytest

from rdmacoll.info.huge_pages import huge_pages

WORDS = ("always", "within_size", "advise", "never", "deny", "force")


@pytest.mark.parametrize("chosen", WORDS)
def test_each_setting(chosen: str, tmp_path: Path) -> None:
    setting = tmp_path / "shmem_enabled"
    setting.write_text(" ".join(f"[{word}]" if word == chosen else word for word in WORDS) + "\n")
    said = huge_pages(setting)
    if chosen in ("never", "deny"):
        assert said == f"none: shmem_enabled is {chosen}; as root: echo advise > {setting}"
    else:
        assert said == f"yes (shmem_enabled is {chosen})"


def test_no_such_kernel(tmp_path: Path) -> None:
    assert huge_pages(tmp_path / "none") == "none: this kernel has none for shared memory"
