"""What torch calls to make a group's backend."""

import os
from typing import TYPE_CHECKING, Any

from rdmacoll.base.agent_protocol import JOINS

from ._agent import own_agent
from ._apart import watch
from ._extension import extension

if TYPE_CHECKING:
    from ._C import RdmaBackend

_met_at_agent = False


def create(group: Any, pg_options: Any) -> "RdmaBackend":
    """The backend of one group; `group` is torch's _DistributedBackendOptions."""
    global _met_at_agent
    module = extension()
    options = _options(module, pg_options)
    options._timeout = group.timeout
    options.group_name = group.group_id
    options.global_ranks_in_group = group.global_ranks_in_group or list(range(group.group_size))
    agent = own_agent()
    address = agent.address if agent is not None else ""
    if getattr(group, "enable_reconfigure", False):  # torch 2.15
        waiting: RdmaBackend = module.create_without_ranks(
            group.store, group.group_rank, group.group_size, options, address
        )
        return waiting
    if agent is not None:
        _refuse_joiner()
    introduces = (
        agent is not None
        and not _met_at_agent
        and agent.introduces(group.group_rank, group.group_size, group.store)
    )
    backend: RdmaBackend = module.create(
        group.store, group.group_rank, group.group_size, options, address, introduces
    )
    _met_at_agent = _met_at_agent or introduces
    if group.group_size > 1:
        watch()
    return backend


def leave_agent_out() -> None:
    """The agent has introduced the world before this process came to be."""
    global _met_at_agent
    _met_at_agent = True


def _refuse_joiner() -> None:
    if os.environ.get("RDMACOLL_ELASTIC") == JOINS and not _met_at_agent:
        raise RuntimeError(
            "RDMACOLL_ELASTIC=joins: this rank was started again alone (rdmarun --elastic), while "
            "the others go on; it gets into their group by rdmacoll.elastic.run() only"
        )


def _options(module: Any, pg_options: Any) -> Any:
    if pg_options is None:
        return module.Options()
    if isinstance(pg_options, module.Options):
        return module.Options.__copy__(pg_options)
    raise TypeError(
        f"pg_options is a {type(pg_options).__name__}; the backend rdma takes rdmacoll.Options"
    )
