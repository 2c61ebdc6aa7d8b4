"""DistributedOptimizer: an optimizer that steps with the gradients of all ranks.

Floor: rdmacoll/horovod/training. Thread: one at a time, as its optimizer.
"""

import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from rdmacoll.horovod.names import ops
from rdmacoll.horovod.names.compression import Compression, Compressor
from rdmacoll.horovod.names.handles import synchronize as wait_for_handle
from rdmacoll.horovod.names.operations import allreduce_async_, sparse_allreduce_async
from rdmacoll.horovod.names.process_sets import ProcessSet, global_process_set

from .adasum_optimizer import AdasumMixin
from .gradients import Gradients
from .meeting import begin, register, signature_of
from .named import check_named_parameters, name_last_group, name_parameters

TOO_OFTEN = (
    "Gradients were computed more than backward_passes_per_step times before step() or "
    "synchronize() was called; raise backward_passes_per_step to accumulate gradients locally"
)

LET_END_S = 30.0  # load_state_dict() waits so long for what it gives up


class _Mixin(torch.optim.Optimizer):
    """What it does besides its optimizer, which is the next class in its order."""

    def _begin(
        self,
        names: dict[torch.Tensor, str],
        compression: type[Compressor],
        backward_passes_per_step: int,
        op: int,
        predivide: float,
        groups: list[list[torch.Tensor]],
        sparse_as_dense: bool,
        process_set: ProcessSet,
    ) -> None:
        self._parameter_names = names
        self._op = op
        self._sparse_as_dense = sparse_as_dense
        self._process_set = process_set
        self.backward_passes_per_step = backward_passes_per_step
        self._synchronized = False
        self._should_synchronize = True
        self._sparse: dict[torch.Tensor, Callable[[], torch.Tensor]] = {}
        self._put: set[torch.Tensor] = set()
        self._compression, self._predivide, self._groups = compression, predivide, groups
        self._gradients: Gradients | None = None
        self._replaced: Gradients | None = None  # others may still be at their last step
        self._hooked: set[torch.Tensor] = set()
        self._take_parameters()
        register(self)

    def _take_parameters(self) -> None:
        names = self._parameter_names
        self._trained = [p for p in names if p.requires_grad or p in self._hooked]
        self._delay = dict.fromkeys(self._trained, self.backward_passes_per_step)
        if not self._process_set.included() or not self._trained:
            return
        self._replaced = self._replaced or self._gradients
        self._gradients = Gradients(
            self._trained, self._groups, self._compression, self._op, self._predivide
        )
        self._signature = signature_of(names, self._op, self._compression)
        own = weakref.ref(self)

        def hook(parameter: torch.Tensor) -> None:
            if (optimizer := own()) is not None:
                optimizer._on_gradient(parameter)

        for parameter in self._trained:
            if parameter not in self._hooked:
                parameter.register_post_accumulate_grad_hook(hook)
                self._hooked.add(parameter)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """All ranks add alike, between two steps. Raises AssertionError after backward()."""
        if self._put:
            raise AssertionError(
                "optimizer.add_param_group() was called after loss.backward() but before "
                "optimizer.step() or optimizer.synchronize(); call it before backward()"
            )
        super().add_param_group(param_group)
        name_last_group(self, self._parameter_names)
        self._take_parameters()

    def _take_unfrozen(self) -> None:
        """Reduces gradients that are in no bucket, as their parameters were not trained before.

        From the next step on they are.
        """
        new = [p for p in self._parameter_names if p.requires_grad and p not in self._hooked]
        if not new or not self._process_set.included():
            return
        handles = []
        for p in new:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad.to_dense()
            name = f"{self._parameter_names[p]}.unfrozen"
            handles.append(
                allreduce_async_(p.grad, name=name, op=self._op, process_set=self._process_set)
            )
        for handle in handles:
            wait_for_handle(handle)
        self._take_parameters()

    def _on_gradient(self, parameter: torch.Tensor) -> None:
        if self._delay[parameter] <= 0:
            raise AssertionError(TOO_OFTEN)
        self._delay[parameter] -= 1
        if self._delay[parameter] == 0:
            self._give(parameter)

    def meet(self) -> None:
        """Makes the group of its gradients, once in each world: with the ranks that are there."""
        if self._gradients is None or self._gradients.has_begun:
            return
        begin(self._gradients, self._process_set, self._signature)
        if self._replaced is not None:
            self._replaced.close()
            self._replaced = None

    def _give(self, parameter: torch.Tensor) -> None:
        self.meet()
        gradients = self._gradients
        assert gradients is not None
        gradient = parameter.grad
        self._put.add(parameter)
        if gradient is not None and gradient.is_sparse:
            if self._sparse_as_dense or not gradients.takes_sparse(parameter):
                self._sparse[parameter] = lambda: _grad_of(parameter).to_sparse()
                gradient = gradient.to_dense()
        elif dim := gradients.sparse_dim(parameter):
            gradient = _sparse_of(parameter, gradient, dim)
        if gradient is not None and gradient.is_sparse:
            self._send_sparse(parameter, gradient)
            gradients.put_sparse(parameter, gradient)
        else:
            gradients.put(parameter, gradient)

    def _send_sparse(self, parameter: torch.Tensor, gradient: torch.Tensor) -> None:
        self._sparse[parameter] = sparse_allreduce_async(
            gradient, self._parameter_names[parameter], self._op, self._process_set
        )

    def synchronize(self) -> None:
        """Waits until all gradients are those of all ranks; what a rank lacks is zeros.

        Raises HorovodInternalError where a rank is lost.
        """
        try:
            if self._gradients is not None:
                for parameter in self._trained:
                    if parameter not in self._put:
                        self._give(parameter)
                self._finish(self._gradients)
            self._take_unfrozen()
        finally:
            self._forget()
        self._synchronized = True

    def _finish(self, gradients: Gradients) -> None:
        """In the first step a gradient may be sparse on some ranks alone: the others add zeros."""
        arrival = gradients.finish()
        mixed = set()
        if arrival is not None:
            mixed = arrival.mixed()
            for parameter in arrival.sparse_elsewhere():
                none = _sparse_of(parameter, None, gradients.sparse_dim(parameter))
                self._send_sparse(parameter, none)
        for parameter, finish in self._sparse.items():
            reduced = finish()
            parameter.grad = _grad_of(parameter) + reduced if parameter in mixed else reduced

    def _forget(self) -> None:
        """What was put is no more in flight, or lost."""
        self._put.clear()
        self._sparse.clear()
        self._delay = dict.fromkeys(self._trained, self.backward_passes_per_step)

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """In it step() does not synchronize, as that was done: to clip gradients, for one."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def set_backward_passes_per_step(self, passes: int) -> None:
        """So many backward passes are added up on each rank before step()."""
        if passes <= 0:
            raise ValueError(f"passes={passes}: give 1 or more")
        self.backward_passes_per_step = passes
        self._delay = dict.fromkeys(self._trained, passes)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """What backward() has begun to reduce is given up: for the others, too, if any wait.

        This rank first waits, at most 30 s, until it has ended: others may be in their backward().
        """
        super().load_state_dict(state_dict)
        if self._put and self._gradients is not None:
            self._gradients.let_end(LET_END_S)
            self._gradients.close()
        self._forget()

    def step(self, closure: Any = None) -> Any:
        """Synchronizes, and steps."""
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() after "
                    "optimizer.synchronize(): gradients are reduced twice, which takes longer and "
                    "changes them; write `with optimizer.skip_synchronize():` around it",
                    stacklevel=2,
                )
            self.synchronize()
        self._synchronized = False
        return super().step(closure)

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Raises AssertionError between backward() and step() or synchronize()."""
        if self._put:
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() but before "
                "optimizer.step() or optimizer.synchronize(): gradients would be lost that are "
                "being reduced; call it before backward()"
            )
        super().zero_grad(*args, **kwargs)


def _grad_of(parameter: torch.Tensor) -> torch.Tensor:
    assert parameter.grad is not None
    return parameter.grad


def _sparse_of(
    parameter: torch.Tensor, gradient: torch.Tensor | None, sparse_dim: int
) -> torch.Tensor:
    """Of a dense gradient, or of none."""
    if gradient is not None:
        return gradient.to_sparse(sparse_dim)
    indices = torch.empty(sparse_dim, 0, dtype=torch.int64)
    values = torch.empty(0, *parameter.shape[sparse_dim:], dtype=parameter.dtype)
    return torch.sparse_coo_tensor(indices, values, parameter.shape, check_invariants=False)


def _groups_of(groups: Any, parameters: list[torch.Tensor]) -> list[list[torch.Tensor]]:
    if groups is None or groups == 0:
        return []
    if isinstance(groups, int) and not isinstance(groups, bool):
        if groups < 0:
            raise ValueError(f"groups={groups}: give 0 or more, or lists of parameters")
        each = -(-len(parameters) // groups)
        return [parameters[i : i + each] for i in range(0, len(parameters), each)]
    if not isinstance(groups, (list, tuple)):
        raise ValueError(
            f"groups is a {type(groups).__name__}; give a number of groups, or lists of parameters"
        )
    seen: set[torch.Tensor] = set()
    for group in groups:
        for parameter in group:
            if not isinstance(parameter, torch.Tensor):
                raise ValueError(f"groups hold a {type(parameter).__name__}; give parameters alone")
            if parameter in seen:
                raise ValueError("groups name a parameter twice; each may be in one group")
            seen.add(parameter)
    known = set(parameters)
    return [kept for group in groups if (kept := [p for p in group if p in known])]


def DistributedOptimizer(  # noqa: N802  (its name is Horovod's)
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
    compression: type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = ops.Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | Sequence[Sequence[torch.Tensor]] | None = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The optimizer, of a class made from its own, stepping with the gradients of all ranks.

    All ranks of the set make it alike, in the same order among their optimizers. named_parameters:
    all that it updates; compression: what is sent of a gradient; backward_passes_per_step: how many
    are added up before; op: hvd.Average, Sum, Min, Max, Product or Adasum;
    gradient_predivide_factor: Average divides by it before, and by the rest after the sum; groups:
    parameters that are reduced together; sparse_as_dense: sparse gradients as dense ones.

    Raises ValueError for what does not fit.
    """
    if num_groups:
        warnings.warn("num_groups=... is the old way; give groups=...", stacklevel=2)
        groups = num_groups if groups is None else groups
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ValueError(f"optimizer is a {type(optimizer).__name__}; give one of torch.optim")
    if ops.checked(op) != ops.Average and gradient_predivide_factor != 1.0:
        raise ValueError(
            f"gradient_predivide_factor={gradient_predivide_factor} goes with op=hvd.Average alone"
        )
    if backward_passes_per_step <= 0:
        raise ValueError(f"backward_passes_per_step={backward_passes_per_step}: give 1 or more")
    names = name_parameters(optimizer, check_named_parameters(optimizer, named_parameters))
    mixin: type = AdasumMixin if op == ops.Adasum else _Mixin
    own = type(optimizer)
    distributed: Any = object.__new__(type(own.__name__, (mixin, own), {}))
    distributed.__dict__.update(optimizer.__dict__)
    if op == ops.Adasum:
        distributed._begin(names, compression, backward_passes_per_step, process_set)
    else:
        trained = [p for p in names if p.requires_grad]
        distributed._begin(
            names,
            compression,
            backward_passes_per_step,
            op,
            gradient_predivide_factor,
            _groups_of(groups, trained),
            sparse_as_dense,
            process_set,
        )
    return distributed
