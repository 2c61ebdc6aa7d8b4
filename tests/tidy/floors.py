"""What may see what: docs/ARCHITECTURE.md as tables, and the rules that hold the tree to them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from source import CPP, Tree

BELOW_TRANSPORT = {"csrc/memory", "csrc/base"}
ON_TRANSPORT = BELOW_TRANSPORT | {"csrc/transport"}
BASIS = ON_TRANSPORT | {"csrc/plan", "csrc/reduce"}
ON_CHANNELS = BASIS | {"csrc/engine/work", "csrc/engine/channel"}
TRAFFIC = {f"csrc/engine/{room}" for room in ("collective", "p2p", "failure", "recorder")}
# What torch_ext takes from the engine: its face, and the values that pass through it.
ENGINE = BASIS | {
    "csrc/engine",
    *(f"csrc/engine/{room}" for room in ("work", "channel", "recorder", "connect")),
}
REMOTE = {"csrc/remote", "csrc/engine/session", "csrc/engine/drive"}
VERBS_ABI = {"csrc/transport/verbs/settings", "csrc/transport/verbs/abi"}
VERBS_DEVICE = VERBS_ABI | {"csrc/transport/verbs/device"}
TCP_SOCKETS = {"csrc/transport/tcp/settings", "csrc/transport/tcp/network"}
SEES: dict[str, set[str]] = {
    "csrc/base": set(),
    "csrc/memory": {"csrc/base"},
    "csrc/plan": {"csrc/base"},
    "csrc/plan/algorithms": {"csrc/base", "csrc/plan"},
    "csrc/plan/layered": {"csrc/base", "csrc/plan"},
    "csrc/plan/selection": {"csrc/base", "csrc/plan", "csrc/plan/algorithms", "csrc/plan/layered"},
    "csrc/plan/cost": {"csrc/base", "csrc/plan", "csrc/plan/selection"},
    "csrc/plan/choice": {
        "csrc/base",
        "csrc/plan",
        "csrc/plan/selection",
        "csrc/plan/cost",
    },
    "csrc/plan/verify": {"csrc/base", "csrc/plan", "csrc/plan/selection"},  # seen by tests only
    "csrc/reduce": {"csrc/base", "csrc/memory"},
    "csrc/transport": BELOW_TRANSPORT,
    "csrc/transport/shm": ON_TRANSPORT,
    "csrc/transport/verbs/settings": {"csrc/base"},
    "csrc/transport/verbs/abi": set(),
    "csrc/transport/verbs/device": ON_TRANSPORT | VERBS_ABI,
    "csrc/transport/verbs/connection": ON_TRANSPORT | VERBS_DEVICE,
    "csrc/transport/verbs": ON_TRANSPORT | VERBS_DEVICE | {"csrc/transport/verbs/connection"},
    "csrc/transport/tcp/settings": {"csrc/base"},
    "csrc/transport/tcp/network": BELOW_TRANSPORT | {"csrc/transport/tcp/settings"},
    "csrc/transport/tcp/connection": ON_TRANSPORT | TCP_SOCKETS,
    "csrc/transport/tcp": ON_TRANSPORT | TCP_SOCKETS | {"csrc/transport/tcp/connection"},
    "csrc/transport/sim": ON_TRANSPORT,  # seen by tests only
    "csrc/engine/work": BASIS,
    "csrc/engine/recorder": BASIS | {"csrc/engine/work"},
    "csrc/engine/channel": BASIS,
    "csrc/engine/collective": ON_CHANNELS,
    "csrc/engine/p2p": ON_CHANNELS | {"csrc/engine/recorder"},
    "csrc/engine/failure": ON_CHANNELS,
    "csrc/engine/connect": ON_CHANNELS
    | {"csrc/transport/shm", "csrc/transport/verbs", "csrc/transport/verbs/settings"}
    | {"csrc/transport/tcp", "csrc/transport/tcp/settings"},
    "csrc/engine/drive": BASIS | {"csrc/engine/work", "csrc/engine/connect"},
    "csrc/engine/group": ON_CHANNELS | TRAFFIC | {"csrc/engine/drive"},
    "csrc/engine/session": ON_CHANNELS
    | {"csrc/engine/connect", "csrc/engine/drive", "csrc/engine/recorder"},
    "csrc/engine": ON_CHANNELS
    | TRAFFIC
    | {"csrc/plan/selection", "csrc/plan/cost", "csrc/plan/choice"}
    | {f"csrc/engine/{room}" for room in ("connect", "group", "drive", "session")},
    "csrc/remote": ON_CHANNELS
    | {f"csrc/engine/{room}" for room in ("connect", "drive", "session")},
    "csrc/ps/table": {"csrc/base", "csrc/memory", "csrc/reduce", "csrc/engine/connect"}
    | {"csrc/remote"},
    "csrc/ps/wire": ON_CHANNELS | REMOTE | {"csrc/engine/connect", "csrc/ps/table"},
    "csrc/ps/server": ON_CHANNELS | REMOTE | {"csrc/ps/table", "csrc/ps/wire"},
    "csrc/ps/client": ON_CHANNELS | REMOTE | {"csrc/ps/table", "csrc/ps/wire"},
    "csrc/files": {"csrc/base"},
    "csrc/order": {"csrc/base"},
    "torch_ext/base": ENGINE,
    "torch_ext/tensors": ENGINE | {"torch_ext/base"},
    "torch_ext/join": ENGINE | {"torch_ext/base", "torch_ext/tensors"},
    "torch_ext/heap": ENGINE | {"torch_ext/base", "torch_ext/tensors", "torch_ext/join"},
    "torch_ext/backend": ENGINE
    | {f"torch_ext/{room}" for room in ("base", "tensors", "join", "heap")},
    "torch_ext/remote": ENGINE
    | REMOTE
    | {f"torch_ext/{room}" for room in ("base", "tensors", "join", "backend")},
    "torch_ext/ps": ENGINE
    | REMOTE
    | {f"csrc/ps/{room}" for room in ("table", "wire", "server", "client")}
    | {f"torch_ext/{room}" for room in ("base", "tensors", "remote")}
    | {"csrc/files"},
    "torch_ext/order": ENGINE
    | {"csrc/order"}
    | {f"torch_ext/{room}" for room in ("base", "tensors", "join", "backend")},
    "torch_ext/ops": ENGINE
    | {f"torch_ext/{room}" for room in ("base", "tensors", "join", "backend")},
    "fuse_ext": {"csrc/base", "csrc/files"},
    "torch_ext": ENGINE
    | {
        f"torch_ext/{room}"
        for room in ("base", "tensors", "join", "heap", "backend", "remote", "ps", "order", "ops")
    }
    | {"csrc/plan/selection", "csrc/plan/cost", "csrc/plan/choice", "csrc/transport/verbs"},
}


def floors(tree: Tree) -> Iterator[str]:
    """Includes point down, and name the header from the root."""
    for path in tree.select(CPP, "csrc/", "torch_ext/", "fuse_ext/"):
        floor = path.parent.as_posix()
        if floor not in SEES:
            yield f"{path}:1: {floor} is no floor; see SEES in {__file__}"
            continue
        for line, header, quoted in tree.includes(path):
            below = header.rpartition("/")[0]
            if quoted and not (tree.root / header).is_file():
                yield f"{path}:{line}: {header} does not exist (name it from the root)"
            elif quoted and below != floor and below not in SEES[floor]:
                yield f"{path}:{line}: {floor} may not see {below}"


def link_edges(tree: Tree) -> Iterator[str]:
    """CMake links what the table lets include, no more."""
    folder_of: dict[str, str] = {}
    for line, text in tree.lines(tree.root / "CMakeLists.txt"):
        if match := re.match(r"\s*floor\((\w+) (\S+) ([^)]*)\)", text):
            name, folder = match[1], "csrc/" + match[2]
            folder_of[name] = folder
            for other in match[3].split():
                if other in folder_of and folder_of[other] not in SEES[folder]:
                    yield f"CMakeLists.txt:{line}: {folder} may not link {folder_of[other]}"


FACE = "rdmacoll (its face)"  # __init__.py and __main__.py
BELOW_LAUNCHER = {"rdmacoll.base", "rdmacoll.launcher.base"}
ON_LAUNCHER = BELOW_LAUNCHER | {FACE, "rdmacoll.launcher", "rdmacoll.launcher.command"}
ON_BENCH = {"rdmacoll.base", "rdmacoll", "rdmacoll.bench", "rdmacoll.bench.frame"}
ON_MEMORY = {"rdmacoll.base", "rdmacoll", "rdmacoll.remote.memory"}
PYTHON_SEES: dict[str, set[str]] = {
    "rdmacoll.base": set(),
    "rdmacoll.debug": {"rdmacoll.base"},
    "rdmacoll.top": {"rdmacoll.base", "rdmacoll.debug"},
    "rdmacoll": {"rdmacoll.base", "rdmacoll.debug"},
    "rdmacoll.info": {"rdmacoll.base", "rdmacoll"},
    "rdmacoll.elastic": {"rdmacoll.base", "rdmacoll"},
    "rdmacoll.remote.memory": {"rdmacoll.base", "rdmacoll"},
    "rdmacoll.remote.versions": ON_MEMORY,
    "rdmacoll.remote.placement": ON_MEMORY,
    "rdmacoll.remote.faces": ON_MEMORY | {"rdmacoll.remote"},
    "rdmacoll.remote": ON_MEMORY | {"rdmacoll.remote.versions", "rdmacoll.remote.placement"},
    "rdmacoll.servers": {"rdmacoll.base"},
    "rdmacoll.ps.base": ON_MEMORY,
    "rdmacoll.ps.freeing": {"rdmacoll"},
    "rdmacoll.ps": ON_MEMORY | {"rdmacoll.servers", "rdmacoll.ps.base", "rdmacoll.ps.freeing"},
    "rdmacoll.files": {"rdmacoll", "rdmacoll.ps", "rdmacoll.ps.freeing"},
    "rdmacoll.mount": {"rdmacoll", "rdmacoll.base", "rdmacoll.files", "rdmacoll.servers"}
    | {f"rdmacoll.ps{room}" for room in ("", ".base", ".freeing")},
    "rdmacoll.horovod.names": {f"rdmacoll{room}" for room in ("", ".base", ".debug", ".elastic")},
    "rdmacoll.horovod.training": {"rdmacoll", "rdmacoll.base", "rdmacoll.horovod.names"},
    "rdmacoll.horovod.elastic": {"rdmacoll", "rdmacoll.base"}
    | {f"rdmacoll.horovod.{room}" for room in ("names", "training")},
    "rdmacoll.horovod": {"rdmacoll", "rdmacoll.base"}
    | {f"rdmacoll.horovod.{room}" for room in ("names", "training", "elastic", "alias")},
    "rdmacoll.horovod.alias": {"rdmacoll.horovod"},
    "rdmacoll.launcher.base": {"rdmacoll.base"},
    "rdmacoll.launcher.keys": BELOW_LAUNCHER,
    "rdmacoll.launcher.bind": BELOW_LAUNCHER,
    "rdmacoll.launcher.preload": BELOW_LAUNCHER,
    "rdmacoll.launcher.star": BELOW_LAUNCHER | {"rdmacoll.launcher.keys"},
    "rdmacoll.launcher.meet": BELOW_LAUNCHER | {"rdmacoll.launcher.keys", "rdmacoll.launcher.star"},
    "rdmacoll.launcher.agent": BELOW_LAUNCHER
    | {"rdmacoll.debug"}
    | {f"rdmacoll.launcher.{room}" for room in ("bind", "keys", "preload", "star", "meet")},
    "rdmacoll.launcher.command.allocation": BELOW_LAUNCHER,
    "rdmacoll.launcher.command.flags": BELOW_LAUNCHER | {"rdmacoll.launcher.keys"},
    "rdmacoll.launcher.command": BELOW_LAUNCHER
    | {
        f"rdmacoll.launcher.{room}"
        for room in ("bind", "keys", "star", "command.allocation", "command.flags")
    }
    | {"rdmacoll.info"},
    "rdmacoll.launcher": BELOW_LAUNCHER
    | {f"rdmacoll.launcher.{room}" for room in ("keys", "preload", "star", "agent", "command")},
    "rdmacoll.bench.frame": {"rdmacoll.base"},
    "rdmacoll.bench": ON_LAUNCHER | {"rdmacoll.bench.frame"},
    "rdmacoll.bench.transfer": ON_BENCH | {"rdmacoll.remote", FACE},
    "rdmacoll.bench.models": ON_BENCH | {"rdmacoll.remote", FACE},
    "rdmacoll.tune": ON_LAUNCHER | ON_BENCH,
    "rdmacoll.plan": ON_BENCH,
    FACE: {f"rdmacoll.{room}" for room in ("base", "debug", "info", "elastic", "remote", "top")}
    | {"rdmacoll.ps", "rdmacoll.servers", "rdmacoll.mount"}
    | {"rdmacoll.bench", "rdmacoll.bench.transfer", "rdmacoll.bench.models", "rdmacoll.tune"}
    | {"rdmacoll", "rdmacoll.plan"},
}


def module_of(path: Path) -> str:
    """As Python names it: launcher/ is installed as rdmacoll.launcher."""
    name = ".".join(path.with_suffix("").parts)
    return "rdmacoll." + name if name.startswith("launcher") else name


def room_of(module: str) -> str:
    if module in ("rdmacoll.__init__", "rdmacoll.__main__"):
        return FACE
    return module.rpartition(".")[0]


def imported(tree: Tree, path: Path, known: set[str]) -> Iterator[tuple[int, str]]:
    """(line, module) of each import of this package's own modules; a package is its __init__."""

    def resolved(name: str) -> str:
        return name if name in known else name + ".__init__"

    folder = module_of(path).split(".")[:-1]
    for node in ast.walk(ast.parse(tree.text(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "rdmacoll":
                    yield node.lineno, resolved(alias.name)
        elif isinstance(node, ast.ImportFrom):
            above = folder[: len(folder) + 1 - node.level] if node.level else []
            name = ".".join([*above, *([node.module] if node.module else [])])
            if name.partition(".")[0] != "rdmacoll":
                continue
            for alias in node.names:
                inside = f"{name}.{alias.name}"
                yield node.lineno, inside if inside in known else resolved(name)


def python_floors(tree: Tree) -> Iterator[str]:
    """Imports point down in Python, too."""
    paths = list(tree.select({".py", ".pyi"}, "rdmacoll/", "launcher/"))
    known = {module_of(path) for path in paths}
    for path in paths:
        room = room_of(module_of(path))
        if room not in PYTHON_SEES:
            yield f"{path}:1: {room} is no floor; see PYTHON_SEES in {__file__}"
            continue
        for line, module in imported(tree, path, known):
            below = room_of(module)
            if below != room and below not in PYTHON_SEES[room]:
                yield f"{path}:{line}: {room} may not see {below}"
