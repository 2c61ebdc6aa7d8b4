"""A rank that runs a file of Horovod's own tests as it is: `rdmarun --horovod rank.py FILE`.

All ranks run the same tests in step. torch.optim.Muon is hidden from them: it is newer than
Horovod, whose tests walk all of torch.optim, and takes parameters of two dimensions only.
Floor: tests. Thread: the main one.
"""

from __future__ import annotations

import sys

import pytest
import torch

LIMIT_S = 120  # for one test


def main() -> int:
    muon = getattr(torch.optim, "Muon", None)
    if muon is not None:
        muon.__module__ = "hidden from tests that look for classes of torch.optim"
    return int(pytest.main(["-v", f"--timeout={LIMIT_S}", "-p", "no:cacheprovider", *sys.argv[1:]]))


if __name__ == "__main__":
    sys.exit(main())
