"""Lays the report out for people: every line as it is printed. Pure."""

import textwrap
from collections.abc import Iterator
from typing import Any

Report = dict[str, Any]

COLUMNS = 100


def lines(report: Report) -> Iterator[str]:
    yield from _table(list(_rows(report)))
    yield ""
    yield from _devices(report["rdma"])
    if choices := report.get("build", {}).get("choices"):
        yield ""
        yield from _choices(choices)
    if "environment" in report:
        yield ""
        settings = report["environment"].items()
        yield "Environment" if settings else "Environment: no RDMACOLL_ variable is set"
        yield from (f"  {name}={value}" for name, value in settings)


def _rows(report: Report) -> Iterator[tuple[str, str]]:
    if build := report.get("build"):
        yield "python", report["python"]
        if build["error"]:
            yield "rdmacoll", build["error"]
        else:
            yield "torch", build["torch"]
            yield from build["facts"].items()
    yield "kernel", report["kernel"]
    yield "cores", str(report["cores"])
    memlock = report["memlock"]
    yield "locked memory", ": ".join(filter(None, (memlock["text"], memlock["remedy"])))
    yield "huge pages", report["huge_pages"]


def _table(rows: list[tuple[str, str]]) -> Iterator[str]:
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        first, *more = value.splitlines()
        yield f"{name:<{width}}  {first}"
        yield from (f"{'':<{width}}  {line}" for line in more)


def _devices(rdma: Report) -> Iterator[str]:
    yield f"RDMA devices (from {rdma['source']})" + ("" if rdma["devices"] else ": none")
    for device in rdma["devices"]:
        facts = [device["driver"]]
        if device["firmware"]:
            facts.append(f"firmware {device['firmware']}")
        facts.append(f"node GUID {device['node_guid']}")
        if device["numa_node"] is not None:
            facts.append(f"NUMA node {device['numa_node']}")
        yield f"  {device['name']}: " + ", ".join(facts)
        if device["problem"]:
            yield from _note(device["problem"], "    ")
        for port in device["ports"]:
            yield from _port(port)
    for advice in rdma["advice"]:
        yield from _note(advice, "  ")


def _note(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        COLUMNS,
        initial_indent=indent + "! ",
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
    )


def _port(port: Report) -> Iterator[str]:
    facts = [port["state"], port["link_layer"], port["rate"]]
    if port["mtu_bytes"] is not None:
        facts.append(f"MTU {port['mtu_bytes']} of {port['max_mtu_bytes']}")
    yield f"    port {port['number']}: " + ", ".join(filter(None, facts))
    for gid in port["gids"]:
        where = f" on {gid['netdev']}" if gid["netdev"] else ""
        yield f"      GID {gid['index']}: {gid['address']}, {gid['type']}{where}"


def _choices(choices: list[Report]) -> Iterator[str]:
    if not any(choice["device"] for choice in choices):
        yield "No rank of this host can use verbs"
        yield from _note(choices[0]["error"], "  ")
        return
    yield "The device that a rank of this host uses, by its LOCAL_RANK"
    for choice in choices:
        yield f"  {choice['local_rank']}: {choice['device'] or choice['error']}"
