"""Whether the system has huge pages for shared memory, which the heap asks for."""

from pathlib import Path

SETTING = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
GIVEN = ("always", "within_size", "advise", "force")


def huge_pages(setting: Path = SETTING) -> str:
    """For people: yes, or why not and what to do about it."""
    try:
        words = setting.read_text().split()
    except OSError:
        return "none: this kernel has none for shared memory"
    chosen = next((word.strip("[]") for word in words if word.startswith("[")), "")
    if chosen in GIVEN:
        return f"yes ({setting.name} is {chosen})"
    return f"none: {setting.name} is {chosen}; as root: echo advise > {setting}"
