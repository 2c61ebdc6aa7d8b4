"""hvd.elastic: training that goes on from the last commit when ranks are lost or come back.

Under `rdmarun --horovod --elastic`; docs/HOROVOD.md shows it.
"""

from rdmacoll.horovod.names.elastic_job import StateLostError
from rdmacoll.horovod.names.world import init, shutdown

from .handlers import (
    ModelStateHandler,
    OptimizerStateHandler,
    SamplerStateHandler,
    StateHandler,
    get_handler_registry,
    set_handler_registry,
)
from .loop import run
from .sampler import ElasticSampler
from .state import ObjectState, State
from .torch_state import TorchState

__all__ = [
    "ElasticSampler",
    "ModelStateHandler",
    "ObjectState",
    "OptimizerStateHandler",
    "SamplerStateHandler",
    "State",
    "StateHandler",
    "StateLostError",
    "TorchState",
    "get_handler_registry",
    "init",
    "run",
    "set_handler_registry",
    "shutdown",
]
