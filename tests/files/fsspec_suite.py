"""fsspec's own tests of a file system, on ours: run by pytest in a rank of a job with servers.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch.distributed as dist
from fsspec.tests import abstract

from rdmacoll.files.filesystem import RdmaFileSystem


@pytest.fixture(scope="session", autouse=True)
def group() -> Iterator[None]:
    dist.init_process_group("rdma")
    yield
    dist.destroy_process_group()


class Fixtures(abstract.AbstractFixtures):
    @pytest.fixture(scope="class")
    def fs(self) -> RdmaFileSystem:
        return RdmaFileSystem()

    @pytest.fixture
    def fs_path(self, fs: RdmaFileSystem) -> Iterator[str]:
        fs.makedirs("suite/of fsspec", exist_ok=True)
        yield "suite/of fsspec"
        fs.rm("suite", recursive=True)


class TestCopy(abstract.AbstractCopyTests, Fixtures):
    pass


class TestGet(abstract.AbstractGetTests, Fixtures):
    pass


class TestOpen(abstract.AbstractOpenTests, Fixtures):
    pass


class TestPipe(abstract.AbstractPipeTests, Fixtures):
    pass


class TestPut(abstract.AbstractPutTests, Fixtures):
    pass
