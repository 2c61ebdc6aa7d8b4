"""Loads torch's generic distributed tests so that a backend of another name is tested as gloo is.

The module is full of checks such as `BACKEND == "gloo"`. Both sides of every comparison in it go
through `as_gloo`, in memory, while it is compiled; `init_process_group(BACKEND)` still sees the
real name. Nothing on disk changes.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

GENERIC = "torch.testing._internal.distributed.distributed_test"
EQUALITIES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
AS_GLOO = "__as_gloo__"


class GlooAndMpi(str):
    """Equal to "gloo", and to "mpi": a few tests of all_to_all on the CPU are kept for MPI."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and str(other) in ("gloo", "mpi")

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def as_gloo(backend: str, operand: Any) -> Any:
    same = isinstance(operand, str) and operand.lower() == backend
    return GlooAndMpi("gloo") if same else operand


class Comparisons(ast.NodeTransformer):
    """x == y becomes __as_gloo__(x) == __as_gloo__(y)."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if all(isinstance(operator, EQUALITIES) for operator in node.ops):
            node.left = self._call(node.left)
            node.comparators = [self._call(operand) for operand in node.comparators]
        return node

    def _call(self, operand: ast.expr) -> ast.expr:
        if isinstance(operand, ast.Constant):  # a literal means what it says
            return operand
        return ast.Call(ast.Name(AS_GLOO, ast.Load()), [operand], [])


@functools.cache
def _code() -> types.CodeType:
    spec = importlib.util.find_spec(GENERIC)
    assert spec is not None and spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(), filename=spec.origin)
    tree = ast.fix_missing_locations(Comparisons().visit(tree))
    return compile(tree, spec.origin, "exec", dont_inherit=True)


def load_generic(backend: str, world: int, folder: str) -> types.ModuleType:
    """A module of its own per world: the tests read their environment while they are defined."""
    os.environ.update(environment(backend, world, folder))
    module = types.ModuleType(f"{GENERIC}_world{world}")
    setattr(module, AS_GLOO, functools.partial(as_gloo, backend))
    sys.modules[module.__name__] = module
    exec(_code(), module.__dict__)
    return module


def environment(backend: str, world: int, folder: str) -> dict[str, str]:
    return {
        "BACKEND": backend,
        "WORLD_SIZE": str(world),
        "TEMP_DIR": folder,
        "INIT_METHOD": f"file://{folder}/init",
    }
