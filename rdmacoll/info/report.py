"""The report of `rdmacoll info`, as plain data: what --json prints and text.py lays out."""

import os
import platform
from dataclasses import asdict
from typing import Any

from .build import ask_build
from .huge_pages import huge_pages
from .listing import list_devices
from .memlock import Memlock


def device_report() -> dict[str, Any]:
    """This machine; needs neither torch nor the extension."""
    memlock = Memlock.of_this_process()
    return {
        "kernel": platform.release(),
        "cores": len(os.sched_getaffinity(0)),
        "memlock": {**asdict(memlock), "text": str(memlock), "remedy": memlock.remedy},
        "huge_pages": huge_pages(),
        "rdma": asdict(list_devices()),
    }


def full_report() -> dict[str, Any]:
    machine = device_report()
    ports = sum(len(device["ports"]) for device in machine["rdma"]["devices"])
    ours = {name: value for name, value in os.environ.items() if name.startswith("RDMACOLL_")}
    return {
        "python": platform.python_version(),
        "build": _build(local_ranks=max(1, ports)),
        **machine,
        "environment": dict(sorted(ours.items())),
    }


def _build(local_ranks: int) -> dict[str, Any]:
    try:
        return {**asdict(ask_build(local_ranks)), "error": ""}
    except ImportError as error:
        return {"error": str(error)}
