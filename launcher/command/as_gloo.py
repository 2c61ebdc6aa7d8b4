"""--as-gloo: the ranks' groups that ask for gloo get rdma. Pure; rdmacoll/as_gloo.py does it.

Floor: launcher/command. Thread: any.
"""

AS_GLOO = (
    "groups that ask for torch's backend gloo get rdma, in scripts and libraries that cannot name "
    "another; sets RDMACOLL_AS_GLOO=1"
)
# By it torch runs what installed packages have for it, rdmacoll/as_gloo.py among them.
AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"


def with_as_gloo(given: bool, env: dict[str, str]) -> dict[str, str]:
    """The environment of the ranks. ValueError: they would get gloo, and hear nothing of it."""
    if given:
        env = env | {"RDMACOLL_AS_GLOO": "1"}
    value = env.get("RDMACOLL_AS_GLOO", "0")
    if value not in ("0", "1"):
        raise ValueError(f"RDMACOLL_AS_GLOO={value!r} is neither 0 nor 1")
    if value == "1" and env.get(AUTOLOAD, "1") != "1":
        raise ValueError(
            f"--as-gloo (RDMACOLL_AS_GLOO=1) with {AUTOLOAD}={env[AUTOLOAD]}: torch would not load "
            f"it, and the ranks would get gloo; unset {AUTOLOAD}"
        )
    return env
