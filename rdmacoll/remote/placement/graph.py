"""What crosses the cuts of a data-flow graph, and what is known of it before anything runs.

The nodes of a graph get the numbers of stages; a value that is made in one and used in a later one
crosses. Whether its shape is known decides how it goes: placed at its receiver, or by mailbox
(Xue et al., RPC Considered Harmful, 2018, section 3). No process group is needed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.func import functional_call
from torch.fx import Graph, GraphModule, Interpreter, Node
from torch.fx.passes.shape_prop import TensorMetadata

from ..memory.kind import Kind

Cut = str | Sequence[str] | Callable[[Node], int]

MOST_NAMES_SHOWN = 20
NUMBERS = (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclass(frozen=True)
class Crossing:
    """A value that is made in one stage and used in others.

    shape: in elements, with the symbols of what is not known; None, like dtype, where the value is
    no tensor. why_dynamic: empty for what can be placed before the first iteration.
    """

    name: str  # of its node
    stage: int
    used_in: tuple[int, ...]
    shape: tuple[int | str, ...] | None
    dtype: torch.dtype | None
    why_dynamic: str
    is_number: bool = False

    @property
    def is_static(self) -> bool:
        return not self.why_dynamic

    @property
    def kind(self) -> Kind:
        """Of one that is static."""
        assert self.is_static and self.dtype is not None and self.shape is not None
        return Kind(self.dtype, tuple(n for n in self.shape if isinstance(n, int)))


def crossings(
    module: GraphModule, cut: Cut, example_inputs: Sequence[Any] | None
) -> tuple[tuple[Crossing, ...], dict[str, int]]:
    """What crosses, in the order in which it is made, and the stage of each node by its name.

    Parameters, buffers and constants are in every stage that uses them, and do not cross. What the
    program returns stays where it was made. Raises as plan() does.
    """
    nodes = [node for node in module.graph.nodes if node.op not in ("get_attr", "output")]
    values = _values(module, example_inputs)
    stages = _stages(nodes, cut, values)
    found = []
    for node in nodes:
        _check_order(node, stages)
        users = {stages[user.name] for user in node.users if user.op != "output"}
        if used_in := tuple(sorted(users - {stages[node.name]})):
            found.append(_crossing(node, stages[node.name], used_in, values))
    return tuple(found), stages


def stage_module(
    module: GraphModule, crossing: Iterable[Crossing], stages: Mapping[str, int], stage: int
) -> GraphModule:
    """The nodes of one stage. It takes by name what comes into it, and returns by name, in a dict,
    what crosses from it and what of it the program returns. Parameters are the module's."""
    comes_in = {one.name for one in crossing if stage in one.used_in}
    goes_on = {one.name for one in crossing if one.stage == stage}
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in module.graph.nodes:
        if node.name in comes_in:
            copies[node] = graph.placeholder(node.name)
        elif stages.get(node.name) == stage or (
            node.op == "get_attr" and any(stages.get(user.name) == stage for user in node.users)
        ):
            copies[node] = graph.node_copy(node, copies.__getitem__)
    returned = module.graph.output_node().all_input_nodes
    results = [node for node in copies if node.name in goes_on]
    results += [node for node in returned if stages.get(node.name) == stage]
    graph.output({node.name: copies[node] for node in results})
    return GraphModule(module, graph)


# --- stages --------------------------------------------------------------------------------------


def _stages(nodes: list[Node], cut: Cut, values: Mapping[str, Any]) -> dict[str, int]:
    stage_of = cut if callable(cut) else _stage_by_order(nodes, cut)
    stages: dict[str, int] = {}
    for node in nodes:
        if (several := _element_of(node, values)) is not None:
            stages[node.name] = stages[several.name]
            continue
        stage = stage_of(node)
        if isinstance(stage, bool) or not isinstance(stage, int):
            raise TypeError(f"cut gives a {type(stage).__name__} for {node.name!r}; give a number")
        if stage < 0:
            raise ValueError(f"cut gives {stage} for {node.name!r}; give 0 or more")
        stages[node.name] = stage
    return stages


def _element_of(node: Node, values: Mapping[str, Any]) -> Node | None:
    """The node of whose several results it takes one, if it does. Then it is where that is, and
    costs nothing, so that only the results that are used elsewhere cross."""
    if node.target is not getitem or not isinstance(node.args[0], Node):
        return None
    several = values.get(node.args[0].name)
    is_one = isinstance(several, TensorMetadata) or not isinstance(several, tuple | list)
    return None if is_one else node.args[0]


def _stage_by_order(nodes: list[Node], cut: str | Sequence[str]) -> Callable[[Node], int]:
    """A cut is after the last node of each name; the nodes behind it are of later stages."""
    names = [cut] if isinstance(cut, str) else list(cut)
    if not names:
        raise ValueError("cut is empty; name a node or a submodule after which to cut")
    place = {node: position for position, node in enumerate(nodes)}
    ends: dict[int, str] = {}
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"cut has a {type(name).__name__} in it; give names, or a function")
        of_module = [place[node] for node in nodes if name in _modules_of(node)]
        end = max(of_module or [place[node] for node in nodes if node.name == name], default=-1)
        if end < 0:
            raise ValueError(f"cut={name!r} names nothing in the graph; {_what_there_is(nodes)}")
        if end in ends:
            raise ValueError(f"cut has {ends[end]!r} and {name!r}, which end at the same node")
        ends[end] = name
    return lambda node: sum(end < place[node] for end in ends)


def _modules_of(node: Node) -> set[str]:
    """The names of the submodules that it is a part of."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = {path for path, _ in stack.values()}
    if node.op == "call_module":
        paths.add(str(node.target))
    return paths - {""}


def _what_there_is(nodes: list[Node]) -> str:
    modules = dict.fromkeys(name for node in nodes for name in sorted(_modules_of(node)))
    return f"submodules: {some(modules)}; nodes: {some(node.name for node in nodes)}"


def some(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - MOST_NAMES_SHOWN} more" if len(every) > MOST_NAMES_SHOWN else ""
    return (", ".join(every[:MOST_NAMES_SHOWN]) or "none") + more


def _check_order(node: Node, stages: Mapping[str, int]) -> None:
    for user in node.users:
        if user.op != "output" and stages[user.name] < stages[node.name]:
            raise ValueError(
                f"{user.name!r} of stage {stages[user.name]} uses {node.name!r} of stage "
                f"{stages[node.name]}; number the stages in the order in which they run (one "
                "process may run several)"
            )


# --- values --------------------------------------------------------------------------------------


class _Shapes(Interpreter):
    """Runs a graph on tensors without data, and keeps what each node gives. The module's own
    parameters and buffers are not touched."""

    def __init__(self, module: GraphModule, mode: FakeTensorMode) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.values: dict[str, Any] = {}
        self._mode = mode

    def without_data(self, value: Any) -> Any:
        return self._mode.from_tensor(value) if isinstance(value, torch.Tensor) else value

    def run_node(self, n: Node) -> Any:
        self.values[n.name] = super().run_node(n)
        return self.values[n.name]

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.without_data(super().get_attr(target, args, kwargs))

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        module = self.fetch_attr(target)
        state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        state = {name: self.without_data(tensor) for name, tensor in state.items()}
        return functional_call(module, state, args, kwargs)


def _values(module: GraphModule, example_inputs: Sequence[Any] | None) -> dict[str, Any]:
    if example_inputs is None:
        return {
            node.name: node.meta["val"] if "val" in node.meta else node.meta["tensor_meta"]
            for node in module.graph.nodes
            if "val" in node.meta or "tensor_meta" in node.meta
        }
    from torch.fx.experimental.symbolic_shapes import ShapeEnv  # it takes a second to import

    # With its symbols, nodes of shapes that depend on data can be run, too.
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(), static_shapes=True)
    shapes = _Shapes(module, mode)
    with mode, torch.no_grad():
        shapes.run(*map(shapes.without_data, example_inputs))
    return shapes.values


def _crossing(
    node: Node, stage: int, used_in: tuple[int, ...], values: Mapping[str, Any]
) -> Crossing:
    if node.name not in values:
        raise ValueError(
            f"the graph does not say of what shape {node.name!r} is, which crosses the cut; give "
            "example_inputs, or what torch.export.export() returns"
        )
    value = values[node.name]
    if not isinstance(value, torch.Tensor | TensorMetadata):
        is_number = isinstance(value, NUMBERS)
        why = f"not a tensor, but of type {type(value).__name__}"
        return Crossing(node.name, stage, used_in, None, None, why, is_number)
    shape = tuple(n if type(n) is int else _dimension(n) for n in value.shape)
    return Crossing(node.name, stage, used_in, shape, value.dtype, _why_dynamic(value.shape))


def _dimension(n: Any) -> int | str:
    from torch.fx.experimental.symbolic_shapes import free_symbols

    return str(n) if free_symbols(n) else int(n)


def _why_dynamic(shape: Any) -> str:
    from torch.fx.experimental.symbolic_shapes import free_symbols, free_unbacked_symbols

    if of_data := free_unbacked_symbols(shape):
        return f"its shape depends on data ({_listed(of_data)})"
    if symbols := free_symbols(shape):
        return f"its shape is symbolic ({_listed(symbols)})"
    return ""


def _listed(symbols: Iterable[Any]) -> str:
    return ", ".join(sorted(map(str, symbols)))
