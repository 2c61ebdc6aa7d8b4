"""The devices of this machine, and processes on them that end with their test.

Floor: tests.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from links import wire_of
from transport_shell import Pair, TransportShell

REPOSITORY = Path(__file__).parents[2]

# A silent or dead peer shows after 67 ms x 4, not 1.9 s.
QUICK = {"RDMACOLL_IB_TIMEOUT": "14", "RDMACOLL_IB_RETRY_CNT": "3"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--build-folder",
        type=Path,
        default=REPOSITORY / "build/cpp",
        help="where cmake has built transport_shell (%(default)s)",
    )


@pytest.fixture(scope="session")
def devices() -> list[str]:
    found = sorted(path.name for path in Path("/sys/class/infiniband").glob("*"))
    assert found, "these tests need an RDMA device; python tests/guest has a software one"
    return found


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Iterator[Callable[..., TransportShell]]:
    """Starts a process on a device, with quick retries unless the settings say otherwise."""
    program = request.config.getoption("--build-folder") / "transport_shell"
    started: list[TransportShell] = []

    def start_one(device: str, prefix: tuple[str, ...] = (), **settings: str) -> TransportShell:
        started.append(TransportShell(program, device, {**QUICK, **settings}, prefix))
        return started[-1]

    yield start_one
    for shell in started:
        shell.kill()


@pytest.fixture
def wired(devices: list[str]) -> list[str]:
    """Two devices whose links are ours to take down."""
    found = [device for device in devices if wire_of(device)]
    if len(found) < 2:
        pytest.skip("no two devices on wires of their own: tests/guest --devices 2 has them")
    return found[:2]


@pytest.fixture
def pair(start: Callable[..., TransportShell], devices: list[str]) -> Pair:
    """On different devices, where there are two."""
    return Pair(start(devices[0]), start(devices[-1]))
