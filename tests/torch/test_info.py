"""The command `rdmacoll info`, as people and programs call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from scripts import run_python
from world import backend

import rdmacoll


@pytest.fixture(autouse=True)
def only_for_ours() -> None:
    if backend() != "rdma":
        pytest.skip(f"{backend()} is torch's own")


def info(*options: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rdmacoll", "info", *options],
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_everything_for_programs() -> None:
    done = info("--json", RDMACOLL_LOG="debug")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    build = report["build"]
    assert build["facts"]["rdmacoll"] == rdmacoll.__version__
    assert build["torch"].startswith(build["facts"]["built for torch"])
    assert {"shm", "verbs", "tcp"} <= set(build["transports"])
    has_mount = find_spec("rdmacoll._fuse") is not None
    assert build["facts"]["mount"].startswith("built" if has_mount else "not built: needs")
    assert build["choices"][0]["local_rank"] == 0
    assert bool(build["choices"][0]["device"]) != bool(build["choices"][0]["error"])
    assert report["environment"]["RDMACOLL_LOG"] == "debug"


def test_everything_for_people() -> None:
    done = info()
    assert done.returncode == 0, done.stderr
    for word in ("torch", "transports", "locked memory", "RDMA devices (from ", "Environment"):
        assert word in done.stdout


def test_a_choice_that_a_variable_spoils() -> None:
    done = info("--json", RDMACOLL_GID_INDEX="999")
    assert done.returncode == 0, done.stderr
    (why,) = {choice["error"] for choice in json.loads(done.stdout)["build"]["choices"]}
    assert why.startswith("RDMACOLL_GID_INDEX='999' is not valid")


def test_the_listing_needs_no_torch() -> None:
    finished = run_python("""
import sys
sys.modules["torch"] = None
sys.argv = ["rdmacoll", "info", "--devices"]
from rdmacoll.__main__ import main
assert main() == 0
""")
    assert finished.code == 0, finished.output
    assert "RDMA devices (from " in finished.output


def test_a_broken_build_is_said() -> None:
    finished = run_python("""
import sys
sys.modules["rdmacoll._C"] = None
sys.argv = ["rdmacoll", "info"]
from rdmacoll.__main__ import main
assert main() == 1
""")
    assert finished.code == 0, finished.output
    assert "rdmacoll's compiled module does not load" in finished.output
    assert "RDMA devices (from " in finished.output
