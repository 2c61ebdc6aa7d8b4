"""remote.plan() without a process group: what crosses a cut, and what is known of it."""

from __future__ import annotations

import pytest
import torch
from torch import fx, nn
from torch.fx.passes.shape_prop import ShapeProp

from rdmacoll import remote

X, SCALE = torch.ones(5, 8), torch.ones(5, 1)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.decoder = nn.Linear(16, 4)
        self.register_buffer("offset", torch.ones(16))

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        hidden = self.encoder(x)
        best, _ = torch.topk(hidden, 3)
        _, half = hidden.split([8, 8], 1)
        return self.decoder(hidden + self.offset) * scale + best.sum() + half.sum()


class Data(nn.Module):
    """Of shapes that depend on data, and with a number that crosses."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.relu(x).nonzero()
        return rows.double().sum() + x.shape[0]


def exported(module: nn.Module, *inputs: torch.Tensor, dynamic: bool = False) -> object:
    batch = {0: torch.export.Dim("batch")}
    shapes = tuple(batch for _ in inputs) if dynamic else None
    return torch.export.export(module, inputs, dynamic_shapes=shapes)


def traced(module: nn.Module) -> fx.GraphModule:
    return fx.symbolic_trace(module)


def facts(plan: remote.Plan) -> list[tuple[str, int, tuple[int, ...], object]]:
    return [(one.name, one.stage, one.used_in, one.shape) for one in plan.crossing]


def test_an_exported_program() -> None:
    plan = remote.plan(exported(Model(), X, SCALE), "encoder")
    assert facts(plan) == [("scale", 0, (1,), (5, 1)), ("relu", 0, (1,), (5, 16))]
    assert all(one.is_static and one.dtype == torch.float32 for one in plan.crossing)
    assert plan.pairs == [(0, 1)]


def test_a_traced_module() -> None:
    expected = [("scale", 0, (1,), (5, 1)), ("encoder_2", 0, (1,), (5, 16))]
    module = traced(Model())
    assert facts(remote.plan(module, "encoder", (X, SCALE))) == expected
    assert all(not node.meta.get("val") for node in module.graph.nodes)
    with pytest.raises(ValueError, match="'scale' is, which crosses the cut; give example_inputs"):
        remote.plan(module, "encoder")
    ShapeProp(module).propagate(X, SCALE)
    assert facts(remote.plan(module, "encoder")) == expected


def test_planning_computes_nothing() -> None:
    module = Model()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    remote.plan(traced(module), "encoder", (X, SCALE))
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_symbolic_shapes_stay_dynamic() -> None:
    plan = remote.plan(exported(Model(), X, SCALE, dynamic=True), "encoder")
    for one, columns in zip(plan.crossing, (1, 16), strict=True):
        rows = one.shape[0]
        assert isinstance(rows, str) and one.shape[1] == columns
        assert not one.is_static and one.why_dynamic == f"its shape is symbolic ({rows})"


@pytest.mark.parametrize("how", ["exported", "traced"])
def test_shapes_that_depend_on_data_and_numbers_stay_dynamic(how: str) -> None:
    if how == "exported":
        program = exported(Data(), X, dynamic=True)
        plan = remote.plan(
            program, lambda node: int(node.name.startswith(("to", "_to", "su", "ad")))
        )
    else:
        plan = remote.plan(traced(Data()), "nonzero", (X,))
    why = {one.name: one.why_dynamic for one in plan.crossing}
    assert why["nonzero"] == "its shape depends on data (u0)"
    others = [text for name, text in why.items() if name != "nonzero"]
    assert len(others) == 1
    if how == "exported":
        assert others == ["not a tensor, but of type SymInt"]


def test_only_what_is_used_of_several_results_crosses() -> None:
    plan = remote.plan(exported(Model(), X, SCALE), ["topk", "split_with_sizes"])
    assert facts(plan) == [
        ("scale", 0, (2,), (5, 1)),
        ("relu", 0, (1, 2), (5, 16)),
        ("getitem", 0, (2,), (5, 3)),
        ("getitem_3", 1, (2,), (5, 8)),
    ]
    assert plan.pairs == [(0, 1), (0, 2), (1, 2)]
    assert [one.name for one in plan.between((0, 2))] == ["scale", "relu", "getitem"]
    traced_plan = remote.plan(traced(Model()), ["topk", "split"], (X, SCALE))
    assert [fact[1:] for fact in facts(traced_plan)] == [fact[1:] for fact in facts(plan)]


def test_names_in_any_order() -> None:
    program = exported(Model(), X, SCALE)
    assert facts(remote.plan(program, ["decoder", "encoder"])) == facts(
        remote.plan(program, ("encoder", "decoder"))
    )


def test_nothing_crosses_after_the_end() -> None:
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    plan = remote.plan(exported(module, X), "1")
    assert plan.crossing == ()
    with pytest.raises(ValueError, match="stages=None .* none, as nothing crosses the cut"):
        plan.sender("x", to=1)


def test_a_function_cuts() -> None:
    program = exported(Model(), X, SCALE)
    late = remote.plan(
        program,
        lambda node: int(
            node.name == "scale" or "add" in node.name or node.name in ("linear_1", "mul")
        ),
    )
    assert "scale" not in [one.name for one in late.crossing]
    assert {"relu", "sum_1", "sum_2"} == {one.name for one in late.crossing}
    seen: list[str] = []

    def note(node: fx.Node) -> int:
        seen.append(node.op)
        return 0

    assert remote.plan(program, note).crossing == ()
    assert "get_attr" not in seen and "output" not in seen


def test_modules_of_the_stages_compute_the_same() -> None:
    torch.manual_seed(1)
    module = Model().eval()
    x, scale = torch.randn(5, 8), torch.randn(5, 1)
    for program in (exported(module, x, scale), traced(module)):
        plan = remote.plan(program, ["encoder.0", "topk", "decoder"], (x, scale))
        values = {"x": x, "scale": scale}
        for stage in range(4):
            stage_module = plan.stage(stage)
            inputs = [node.name for node in stage_module.graph.find_nodes(op="placeholder")]
            made = stage_module(**{name: values[name] for name in inputs})
            values.update(made)
            for other in range(4):
                if (stage, other) in plan.pairs:
                    assert {one.name for one in plan.between((stage, other))} <= set(made)
        assert torch.equal(made["add_2"], module(x, scale))
    assert plan.stage(0).encoder._modules["0"].weight is module.encoder[0].weight
    with pytest.raises(ValueError, match="number=4 is no stage; there are"):
        plan.stage(4)


def test_the_report() -> None:
    text = str(remote.plan(exported(Model(), X, SCALE), "encoder"))
    assert [line.split() for line in text.splitlines()[:3]] == [
        ["value", "stages", "shape", "dtype", "how", "it", "goes"],
        ["scale", "0", "to", "1", "(5,", "1)", "float32", "placed"],
        ["relu", "0", "to", "1", "(5,", "16)", "float32", "placed"],
    ]
    assert text.splitlines()[3].startswith("2 of 2 placed: 340 B in each iteration")
    text = str(remote.plan(exported(Model(), X, SCALE, dynamic=True), "encoder"))
    assert "by mailbox: its shape is symbolic" in text and "0 of 2 placed" in text


def test_wrong_arguments() -> None:
    program = exported(Model(), X, SCALE)
    plan = remote.plan(program, "encoder")
    wrong = [
        (TypeError, "program is a Model", lambda: remote.plan(Model(), "encoder")),
        (ValueError, r"cut='x1' names nothing .*submodules: encoder, encoder.0.*nodes: x, scale",
         lambda: remote.plan(program, "x1")),
        (ValueError, "cut is empty", lambda: remote.plan(program, [])),
        (TypeError, "cut has a int in it", lambda: remote.plan(program, [3])),
        (ValueError, "'encoder' and 'relu', which end at the same node",
         lambda: remote.plan(program, ["encoder", "relu"])),
        (TypeError, "cut gives a str for 'x'", lambda: remote.plan(program, lambda node: "0")),
        (ValueError, "cut gives -1 for 'x'", lambda: remote.plan(program, lambda node: -1)),
        (ValueError, "'linear' of stage 0 uses 'x' of stage 1",
         lambda: remote.plan(program, lambda node: int(node.name == "x"))),
        (ValueError, r"stages=\(1, 0\) have nothing between them; there are: \(0, 1\)",
         lambda: plan.between((1, 0))),
    ]  # fmt: skip
    for error, match, call in wrong:
        with pytest.raises(error, match=match):
            call()
