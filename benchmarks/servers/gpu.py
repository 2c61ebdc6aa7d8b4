"""Pushes and pulls of 64 MB that lie on a GPU, beside the copy to the host or from it alone, and
beside the same of the host."""

from __future__ import annotations

from functools import partial

import torch
from turns import Seconds, in_turns, timed

from rdmacoll import ps

ELEMENTS = 16 << 20  # 64 MB


def gpu(kv: ps.KV, rounds: int) -> dict[str, Seconds]:
    kv.init("w", torch.zeros(ELEMENTS), ps.SGD(lr=0.1))
    there = torch.full((ELEMENTS,), 1e-3, device="cuda")
    here = torch.full((ELEMENTS,), 1e-3).pin_memory()

    def push(gradient: torch.Tensor) -> None:
        kv.wait(kv.push("w", gradient))

    def pull(out: torch.Tensor) -> None:
        kv.pull("w", out)
        torch.cuda.synchronize()

    def copy(to: torch.Tensor, source: torch.Tensor) -> None:
        to.copy_(source, non_blocking=True)
        torch.cuda.synchronize()

    cases = {
        "push, SGD": {
            "servers": timed(partial(push, there)),
            "copy alone": timed(partial(copy, here, there.clone())),
            "of the host": timed(partial(push, here.clone())),
        },
        "pull": {
            "servers": timed(partial(pull, torch.empty_like(there))),
            "copy alone": timed(partial(copy, torch.empty_like(there), here)),
            "of the host": timed(partial(pull, torch.empty_like(here))),
        },
    }
    return {case: in_turns(rounds, ways) for case, ways in cases.items()}
