"""What is compiled in and which device it chooses, asked of the extension: loads torch."""

from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec

MOUNT_NEEDS = (
    "needs fuse3/fuse_lowlevel.h when rdmacoll is installed: install libfuse3-dev (Debian, Ubuntu) "
    "or fuse3-devel (Red Hat, SUSE), and rdmacoll again"
)


@dataclass(frozen=True)
class Choice:
    """The RDMA device of a rank of this host, and why that one; or why there is none."""

    local_rank: int
    device: str = ""
    error: str = ""


@dataclass(frozen=True)
class Build:
    torch: str
    facts: dict[str, str]
    transports: list[str]
    choices: list[Choice]


def ask_build(local_ranks: int) -> Build:
    """ImportError says what to do if there is no torch or the extension does not load into it."""
    import torch

    facts = build_facts()
    return Build(
        torch=torch.__version__,
        facts=facts,
        transports=facts["transports"].split(", "),
        choices=[_choice(rank) for rank in range(local_ranks)],
    )


def build_facts() -> dict[str, str]:
    from rdmacoll._extension import extension

    return {"rdmacoll": version("rdmacoll"), **extension().build_info(), "mount": mount_fact()}


def mount_fact() -> str:
    return "built" if find_spec("rdmacoll._fuse") else f"not built: {MOUNT_NEEDS}"


def _choice(local_rank: int) -> Choice:
    from rdmacoll._extension import extension

    try:
        return Choice(local_rank, device=extension().explain_device(local_rank))
    except RuntimeError as error:  # what every Status becomes
        return Choice(local_rank, error=str(error).removeprefix("rdma: "))
