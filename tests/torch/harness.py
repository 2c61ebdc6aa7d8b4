"""@distributed(1, 2, 3): the decorated test runs in every rank of worlds of these sizes.

The arguments of a body are its pytest parameters, not fixtures (they travel to other processes).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from world import Hosted, Outcome, World, backend

ALL_WORLDS = (1, 2, 3, 4, 7)


class Worlds:
    """The worlds of one pytest session, started when first asked for."""

    def __init__(self, hosted: Hosted | None = None) -> None:
        self._hosted = hosted
        self.warm: dict[int, World] = {}

    def run(
        self,
        size: int,
        body: Callable[..., Any],
        kwargs: dict[str, Any],
        *,
        fresh: bool,
        init: bool,
        dies: frozenset[int],
        deadline_s: float,
    ) -> None:
        world = self.warm.pop(size, None) if not fresh else None
        world = world or World(size, init, self._hosted)
        outcomes = world.run(body, kwargs, deadline_s)
        unexpected = {
            rank: outcome
            for rank, outcome in enumerate(outcomes)
            if (outcome.kind == "died") != (rank in dies) or outcome.kind in ("failed", "hung")
        }
        if fresh or unexpected or any(outcome.kind == "died" for outcome in outcomes):
            world.kill()
        else:
            self.warm[size] = world
        if unexpected:
            pytest.fail(_report(unexpected), pytrace=False)
        if all(outcome.kind == "skipped" for outcome in outcomes):
            pytest.skip(outcomes[0].text)

    def close(self) -> None:
        codes = {size: world.close() for size, world in self.warm.items()}
        assert all(code == 0 for world in codes.values() for code in world), (
            f"ranks did not leave cleanly; exit statuses by world: {codes}"
        )


def _report(outcomes: dict[int, Outcome]) -> str:
    """Every rank's story once; ranks that tell the same one share it."""
    stories: dict[str, list[int]] = {}
    for rank, outcome in sorted(outcomes.items()):
        stories.setdefault(f"{outcome.kind}: {outcome.text}", []).append(rank)
    return "\n".join(f"--- rank {ranks} {text}" for text, ranks in stories.items())


def distributed(
    *sizes: int,
    fresh: bool = False,
    init: bool = True,
    dies: tuple[int, ...] = (),
    deadline_s: float = 90.0,
    gloo_lacks: str = "",
    one_host: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """fresh: processes of its own, ended afterwards. init: with the default group made.
    dies: ranks that end themselves. gloo_lacks: why the body is not for gloo. one_host: it is about
    what only ranks of one host do, and left out over several."""

    def decorate(body: Callable[..., Any]) -> Callable[..., None]:
        @functools.wraps(body)
        def test(worlds: Worlds, world_size: int, **kwargs: Any) -> None:
            if gloo_lacks and backend() == "gloo":
                pytest.skip(f"gloo: {gloo_lacks}")
            worlds.run(
                world_size,
                body,
                kwargs,
                fresh=fresh or not init or bool(dies),
                init=init,
                dies=frozenset(dies),
                deadline_s=deadline_s,
            )

        keyword = inspect.Parameter.KEYWORD_ONLY
        own = [inspect.Parameter(name, keyword) for name in ("worlds", "world_size")]
        parameters = [*own, *(p.replace(kind=keyword) for p in _parameters(body))]
        test.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        test.body = body  # type: ignore[attr-defined]
        test.one_host = one_host  # type: ignore[attr-defined]
        # Whether a world that goes on to the next test may run it: tests/rdma has no other.
        test.leaves_world_usable = not (fresh or dies) and init  # type: ignore[attr-defined]
        return pytest.mark.parametrize("world_size", sizes, ids="world{}".format)(test)

    return decorate


def _parameters(body: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(body).parameters.values())
