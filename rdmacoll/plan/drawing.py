"""The picture of a plan: hosts as boxes, ranks as circles, what they send as arrows.

Arrows between hosts are as wide as the bytes they carry, and labelled with what the one host sends
to the other in the whole operation; those inside a host are thin. Where ranks of different hosts
send too many messages to be told apart, an arrow is all of a host's to another.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rdmacoll.base.byte_sizes import text_of_size
from rdmacoll.bench.frame.figure import save

from .facts import Facts
from .flows import Flow, Flows
from .words import link_lines

Point = tuple[float, float]

RANK_RADIUS = 0.3
BOX_MARGIN = 0.6
GAP = 3.5  # between boxes, for the labels
INCHES_PER_UNIT = 0.55
HOST_WIDTH = 14.0  # points: of what the host sends most to another one, all its arrows together
WIDEST, THINNEST = 4.0, 0.4  # of one arrow
BEND = 0.12  # so that the two directions do not cover each other
LABEL_AT = 0.36  # of the way to the other host
MOST_ARROWS = 200  # between ranks of different hosts
MOST_LABELS = 12  # of one text


def draw(facts: Facts, path: Path) -> None:
    from matplotlib.figure import Figure

    places = [_inside(ranks, len(facts.hosts)) for ranks in facts.hosts]
    centres = _centres([_size(each) for each in places])
    at = [
        (centre[0] + x, centre[1] + y)
        for centre, inside in zip(centres, places, strict=True)
        for x, y in inside
    ]
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.set_aspect("equal")
    axes.axis("off")
    sizes = [_size(inside) for inside in places]
    boxes = [
        _draw_host(axes, f"host {host}", centre, size)
        for host, (centre, size) in enumerate(zip(centres, sizes, strict=True))
    ]
    for rank, place in enumerate(at):
        _draw_rank(axes, rank, place)
    _draw_inside(axes, facts, at)
    _draw_between(axes, facts, at, list(zip(centres, boxes, strict=True)))
    said = _draw_labels(axes, facts.links, centres, max(height for _, height in sizes))
    axes.autoscale_view()
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    figure.set_size_inches(INCHES_PER_UNIT * (right - left), INCHES_PER_UNIT * (top - bottom) + 0.5)
    size = f" of {text_of_size(facts.bytes)}" if facts.bytes else ""
    title = f"{facts.collective}{size} on {facts.shape}: {facts.shown}"
    figure.suptitle("\n".join([title, *said]), fontsize="medium")
    save(figure, path)


def _inside(ranks: int, hosts: int) -> list[Point]:
    """Of a host's ranks around its centre: a column where there are two hosts, else a block."""
    columns = 1 if hosts == 2 else math.ceil(math.sqrt(ranks))
    rows = math.ceil(ranks / columns)
    return [
        (rank % columns - (columns - 1) / 2, (rows - 1) / 2 - rank // columns)
        for rank in range(ranks)
    ]


def _size(inside: list[Point]) -> Point:
    width, height = (2 * max(abs(point[axis]) for point in inside) for axis in (0, 1))
    return width + 2 * BOX_MARGIN, height + 2 * BOX_MARGIN


def _centres(sizes: list[Point]) -> list[Point]:
    """Of the boxes: on a circle, the first on the left, the others clockwise."""
    count = len(sizes)
    if count == 1:
        return [(0.0, 0.0)]
    if count == 2:
        distance = sum(width for width, _ in sizes) / 2 + GAP
        return [(-distance / 2, 0.0), (distance / 2, 0.0)]
    chord = max(math.hypot(*size) for size in sizes) + GAP / 2
    radius = chord / (2 * math.sin(math.pi / count))
    angles = [math.pi - 2 * math.pi * host / count for host in range(count)]
    return [(radius * math.cos(angle), radius * math.sin(angle)) for angle in angles]


def _draw_host(axes: Any, name: str, centre: Point, size: Point) -> Any:
    from matplotlib.patches import FancyBboxPatch

    corner = centre[0] - size[0] / 2, centre[1] - size[1] / 2
    box = FancyBboxPatch(
        corner, *size, boxstyle="round,pad=0,rounding_size=0.2", facecolor="0.96", edgecolor="0.6"
    )
    axes.add_patch(box)
    axes.text(centre[0], corner[1] + size[1] + 0.1, name, ha="center", va="bottom")
    return box


def _draw_rank(axes: Any, rank: int, place: Point) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle(place, RANK_RADIUS, facecolor="white", edgecolor="black", zorder=3))
    axes.text(*place, str(rank), ha="center", va="center", fontsize="small", zorder=4)


def _draw_inside(axes: Any, facts: Facts, at: list[Point]) -> None:
    host_of = facts.host_of
    for sender, receiver in sorted(facts.flows):
        if host_of[sender] == host_of[receiver]:
            _draw_arrow(axes, (at[sender], at[receiver]), 2 * BEND, color="0.7", shrinkA=8)


def _draw_between(axes: Any, facts: Facts, at: list[Point], hosts: list[tuple[Point, Any]]) -> None:
    """hosts: where each is, and its box."""
    host_of, links = facts.host_of, facts.links
    most = max([flow.bytes for flow in links.values()] + [1])
    far = {pair: flow for pair, flow in facts.flows.items() if len({host_of[r] for r in pair}) > 1}
    by_rank = len(far) <= MOST_ARROWS
    for (sender, receiver), flow in sorted((far if by_rank else links).items()):
        width = min(max(HOST_WIDTH * flow.bytes / most, THINNEST), WIDEST) if flow.bytes else 1.0
        if by_rank:
            ends, style = (at[sender], at[receiver]), {"shrinkA": 8}
            colour = host_of[sender]
        else:
            (start, box), (end, other_box) = hosts[sender], hosts[receiver]
            ends, style = (start, end), {"patchA": box, "patchB": other_box}
            colour = sender
        _draw_arrow(axes, ends, BEND, width, color=f"C{colour}", alpha=0.7, zorder=2, **style)


def _draw_arrow(
    axes: Any, ends: tuple[Point, Point], bend: float, width: float = THINNEST, **style: Any
) -> None:
    from matplotlib.patches import FancyArrowPatch

    arrow = FancyArrowPatch(
        *ends,
        connectionstyle=f"arc3,rad={bend}",
        arrowstyle="-|>",
        mutation_scale=6 + width,
        linewidth=width,
        shrinkB=style.get("shrinkA", 2),
        **style,
    )
    axes.add_patch(arrow)


def _draw_labels(axes: Any, links: Flows, centres: list[Point], height: float) -> list[str]:
    """Of all links; or what the title says instead, where many are alike."""
    if len(links) > MOST_LABELS and len({flow.bytes for flow in links.values()}) == 1:
        return list(link_lines(links, len(centres)))
    for (sender, receiver), flow in links.items():
        if len(centres) == 2:  # beneath what goes to the right, above what goes to the left
            place = 0.0, (sender - receiver) * (height / 2 + 0.2)
        else:
            place = _beside(centres[sender], centres[receiver])
        axes.text(
            *place,
            _label(flow),
            color=f"C{sender}",
            ha="center",
            va="center",
            fontsize="small",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
            zorder=5,
        )
    return []


def _beside(sender: Point, receiver: Point) -> Point:
    """The line between them, on the side to which its arrows bend, and not where the lines of
    others cross it."""
    x, y = receiver[0] - sender[0], receiver[1] - sender[1]
    aside = 2 * BEND * LABEL_AT * (1 - LABEL_AT)
    return sender[0] + LABEL_AT * x + aside * y, sender[1] + LABEL_AT * y - aside * x


def _label(flow: Flow) -> str:
    if flow.bytes:
        return text_of_size(flow.bytes)
    return "1 token" if flow.messages == 1 else f"{flow.messages} tokens"
