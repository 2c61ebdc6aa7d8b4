"""What ranks begin with: parameters, an optimizer's state, any objects.

Floor: rdmacoll/horovod/training. Thread: any.
"""

import collections.abc
import io
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from rdmacoll.horovod.names.handles import synchronize
from rdmacoll.horovod.names.operations import allgather_async, broadcast_async_, root_in
from rdmacoll.horovod.names.process_sets import ProcessSet, global_process_set

try:
    import cloudpickle as pickler  # functions and classes of scripts, too
except ImportError:
    pickler = pickle


def broadcast_parameters(
    params: Mapping[str, Any] | Iterable[tuple[str, Any]],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
) -> None:
    """All ranks have the root's values of these tensors, in place.

    params: a model's state_dict() or named_parameters(); what is no tensor is left alone
    """
    if isinstance(params, collections.abc.Mapping):
        named = sorted(params.items())
    elif isinstance(params, collections.abc.Iterable) and not isinstance(params, torch.Tensor):
        named = [one if isinstance(one, tuple) else ("", one) for one in params]
    else:
        raise ValueError(
            f"params is a {type(params).__name__}; give a state_dict(), or pairs of a name and a "
            "tensor"
        )
    tensors = [tensor for _, tensor in named if isinstance(tensor, torch.Tensor)]
    handles = [
        broadcast_async_(tensor, root_rank, f"parameter.{number}", process_set)
        for number, tensor in enumerate(tensors)
    ]
    for handle in handles:
        synchronize(handle)


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    root_rank: int,
    model: torch.nn.Module | None = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """All ranks have the root's state and options of the optimizer. model: of no meaning here."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("LBFGS keeps its state in another form; broadcast its parameters alone")
    state = optimizer.state_dict()
    tensors: list[torch.Tensor] = []
    is_root = process_set.rank() == root_in(process_set, root_rank)
    outline = _outline(state, tensors) if is_root else None
    outline = broadcast_object(outline, root_rank, process_set=process_set)
    if not is_root:
        tensors = []
        state = _filled(outline, tensors)
    broadcast_parameters([("", tensor) for tensor in tensors], root_rank, process_set)
    if not is_root:
        _load(optimizer, state)


class _Blank:
    """Stands for a tensor."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.shape = tuple(tensor.shape)
        self.dtype = tensor.dtype


def _outline(value: Any, tensors: list[torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        tensors.append(value.detach().contiguous())
        return _Blank(value)
    if isinstance(value, dict):
        return {key: _outline(one, tensors) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_outline(one, tensors) for one in value)
    return value


def _filled(value: Any, tensors: list[torch.Tensor]) -> Any:
    if isinstance(value, _Blank):
        tensors.append(torch.empty(value.shape, dtype=value.dtype))
        return tensors[-1]
    if isinstance(value, dict):
        return {key: _filled(one, tensors) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_filled(one, tensors) for one in value)
    return value


def _load(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    # Groups of parameters may have keys that this rank's options lack, and the other way round.
    for own, theirs in zip(optimizer.param_groups, state["param_groups"], strict=True):
        for key in [key for key in own if key != "params" and key not in theirs]:
            del own[key]
    optimizer.load_state_dict(state)


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The root's object, pickled; with cloudpickle, if it is installed."""
    label = "object" if name is None else name
    is_root = process_set.rank() == root_in(process_set, root_rank)
    data = torch.empty(0, dtype=torch.uint8)
    if is_root:
        data = _pickled(obj)
    size = torch.tensor([data.numel()])
    synchronize(broadcast_async_(size, root_rank, f"{label}.size", process_set))
    if not is_root:
        data = torch.empty(int(size.item()), dtype=torch.uint8)
    synchronize(broadcast_async_(data, root_rank, f"{label}.data", process_set))
    return obj if is_root else _unpickled(data)


def allgather_object(
    obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """The objects of all ranks, by rank."""
    label = "object" if name is None else name
    data = _pickled(obj)
    sizes = allgather_async(torch.tensor([data.numel()]), f"{label}.sizes", process_set)
    everyones = allgather_async(data, f"{label}.everyones", process_set)
    parts = torch.split(synchronize(everyones), synchronize(sizes).tolist())
    return [_unpickled(part) for part in parts]


def _pickled(obj: Any) -> torch.Tensor:
    stream = io.BytesIO()
    pickler.dump(obj, stream)
    return torch.frombuffer(bytearray(stream.getbuffer()), dtype=torch.uint8)


def _unpickled(data: torch.Tensor) -> Any:
    return pickle.loads(data.numpy().tobytes())
