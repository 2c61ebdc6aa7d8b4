"""The tables of a job in its mount: programs read them by path, as NumPy's files.

Floor: tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fuse import check_fuse
from job_runner import Jobs, clean_jobs

READS = """
import errno, os, subprocess
from pathlib import Path
import numpy as np
import torch
import torch.distributed as dist
from rdmacoll import ps

dist.init_process_group("rdma")
folder = Path(os.environ["RDMACOLL_MOUNT"])
kv = ps.KV()
values = torch.arange(600_000.0).view(3, 2, 100_000)
kv.init("a/b", values, optimizer=ps.SGD(lr=1.0))
path = folder / ".tables" / "a%2Fb.npy"
assert os.listdir(folder / ".tables") == ["a%2Fb.npy"]
assert np.array_equal(np.load(path), values.numpy())
with path.open("rb", buffering=0) as opened:
    kv.push("a/b", torch.ones_like(values)).wait()
    after = (values - 1).numpy()
    assert np.array_equal(np.load(opened), after)
data = path.read_bytes()
assert len(data) == path.stat().st_size and data[-after.nbytes:] == after.tobytes()
with path.open("rb", buffering=0) as opened:
    for first in 0, 1, 120, 127, 128, 131, 1_048_577:
        assert os.pread(opened.fileno(), 50, first) == data[first:first + 50], first
about = {name: os.getxattr(path, "user.rdmacoll." + name) for name in ("dtype", "shape")}
assert about == {"dtype": b"float32", "shape": b"3,2,100000"}
assert "user.rdmacoll.shape" in os.listxattr(path)
subprocess.run(["cp", path, "copied.npy"], check=True)
assert np.array_equal(np.load("copied.npy"), after)

def refused(number, does):
    try:
        does()
    except OSError as error:
        assert error.errno == number, error
    else:
        raise AssertionError(does)

(folder / "file").write_text("text")
refused(errno.EROFS, lambda: path.open("r+b"))
refused(errno.EROFS, lambda: path.write_bytes(b""))
refused(errno.EROFS, path.unlink)
refused(errno.EROFS, lambda: os.truncate(path, 0))
refused(errno.EROFS, lambda: path.chmod(0o600))
refused(errno.EROFS, lambda: os.utime(path))
refused(errno.EROFS, lambda: (folder / ".tables" / "new").touch())
refused(errno.EROFS, lambda: (folder / ".tables" / "new").mkdir())
refused(errno.EROFS, lambda: path.rename(folder / "moved"))
refused(errno.EROFS, lambda: (folder / "file").rename(path))
refused(errno.EROFS, lambda: (folder / ".tables").rename(folder / "moved"))
refused(errno.EROFS, (folder / ".tables").rmdir)
refused(errno.EEXIST, (folder / ".tables").mkdir)
refused(errno.ENODEV, lambda: np.load(path, mmap_mode="r"))
assert not (folder / ".mmap" / ".tables").exists()
assert os.listdir(folder) == ["file"]

with path.open("rb", buffering=0) as opened:
    kv.drop("a/b")
    refused(errno.ESTALE, lambda: os.pread(opened.fileno(), 10, 200))
assert not path.exists() and os.listdir(folder / ".tables") == []
print("all is read")
dist.destroy_process_group()
"""


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    check_fuse()
    with clean_jobs(tmp_path) as jobs:
        yield jobs


def test_tables_are_read_by_path(jobs: Jobs) -> None:
    done = jobs.run_script(READS, "-np", "1", "--servers", "2", "--mount", "files")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all is read" in done.stdout
