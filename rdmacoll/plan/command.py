"""`rdmacoll plan`, the command: asks the compiled module and prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rdmacoll.bench.options import BadArgument

from . import text
from .facts import WHOLE_RANKS, as_data, facts_of
from .options import Options

if TYPE_CHECKING:
    from rdmacoll._C import PlannedGroup

DRAWN_HOSTS = 8


def plan(options: Options) -> None:
    """BadArgument, if there is no such thing."""
    from rdmacoll._extension import extension

    try:
        group = extension().PlannedGroup(options.hosts, options.root)
        _require_fitting(group, options)
        facts = facts_of(
            group,
            options.collective,
            options.bytes,
            options.root,
            options.algorithm,
            _shown(group, options),
        )
    except ValueError as error:
        raise BadArgument(str(error)) from error
    if options.svg is not None:
        from .drawing import draw

        draw(facts, options.svg)
    if options.json:
        print(json.dumps(as_data(facts), indent=2))
    else:
        print(*text.lines(facts), sep="\n")


def _require_fitting(group: PlannedGroup, options: Options) -> None:
    ranks = sum(group.hosts)
    if ranks < 2:
        raise BadArgument(f"--hosts {options.hosts}: a collective takes at least 2 ranks")
    if options.tuning is not None:
        try:
            group.use_tuning(options.table)
        except ValueError as error:
            raise BadArgument(f"--tuning {options.tuning}: {error}") from error
    if options.steps and options.rank is None and ranks > WHOLE_RANKS:
        raise BadArgument(
            f"--steps: {ranks} ranks are more than {WHOLE_RANKS}; name one with --rank R"
        )
    if options.svg is not None and (ranks > WHOLE_RANKS or len(group.hosts) > DRAWN_HOSTS):
        raise BadArgument(
            f"--svg {options.svg}: {len(group.hosts)} hosts and {ranks} ranks do not fit in a "
            f"picture; draw {DRAWN_HOSTS} hosts and {WHOLE_RANKS} ranks at most"
        )


def _shown(group: PlannedGroup, options: Options) -> list[int]:
    """The ranks whose steps are asked for."""
    if not options.steps:
        return []
    return list(range(sum(group.hosts))) if options.rank is None else [options.rank]
