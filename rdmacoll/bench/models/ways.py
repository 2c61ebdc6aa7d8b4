"""All ways by their names. Those of others are imported where they are asked for."""

from .team import Team, Way


def make_way(name: str, team: Team) -> Way:
    """Called by all processes of the team."""
    match name:
        case "rdma":
            from .rdma import Remote

            return Remote(team)
        case "grpc":
            from .grpc_way import Grpc

            return Grpc(team)
        case "torch-rpc":
            from .torch_rpc_way import TorchRpc

            return TorchRpc(team)
    raise AssertionError(name)
