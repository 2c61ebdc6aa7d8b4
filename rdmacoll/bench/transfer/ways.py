"""All ways by their names. Those of others are imported where they are asked for."""

from .pair import Pair, Way


def make_way(name: str, pair: Pair) -> Way:
    """Called by both processes of the pair."""
    match name:
        case "rdma" | "rdma-again":
            from .rdma import Remote

            return Remote(pair)
        case "rdma-ordinary":
            from .rdma import Remote

            return Remote(pair, ordinary_source=True)
        case "flag":
            from .flag import Flag

            return Flag(pair)
        case "gloo":
            from .gloo import Gloo

            return Gloo(pair)
        case "torch-rpc":
            from .torch_rpc import TorchRpc

            return TorchRpc(pair)
        case "grpc":
            from .grpc_calls import Grpc

            return Grpc(pair)
    raise AssertionError(name)
