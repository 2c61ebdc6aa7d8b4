"""`import horovod.torch` finds rdmacoll.horovod: install() makes it so in this process.

Nothing is imported before a script asks for it. sitecustomize.py runs this file when a rank starts,
and without the package around it, which would import torch. So what is here uses modules of python
alone, and is the same when it is run twice.
Floor: rdmacoll/horovod/alias. Thread: any.
"""

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

VERSION = "0.28.1"  # of the Horovod whose interface this is
FACE = "rdmacoll.horovod"
HELPERS = f"{FACE}.alias.helpers"
ELASTIC = f"{FACE}.elastic"

# Horovod's modules, and which of ours each one is.
MODULES = {
    "horovod.torch": FACE,
    "horovod.torch.mpi_ops": FACE,
    "horovod.torch.optimizer": f"{FACE}.training.optimizer",
    "horovod.torch.functions": f"{FACE}.training.functions",
    "horovod.torch.compression": f"{FACE}.names.compression",
    "horovod.torch.sync_batch_norm": f"{FACE}.training.sync_batch_norm",
    "horovod.torch.elastic": ELASTIC,
    "horovod.torch.elastic.state": ELASTIC,
    "horovod.torch.elastic.sampler": f"{ELASTIC}.sampler",
    "horovod.common.elastic": ELASTIC,
    "horovod.common.exceptions": f"{FACE}.names.exceptions",
    "horovod.common.process_sets": f"{FACE}.names.process_sets",
    "horovod.common.util": HELPERS,
    "horovod.runner.util.threads": HELPERS,
    "horovod.runner.common.util.env": HELPERS,
}
# Those that only hold others.
PACKAGES = {
    "horovod",
    "horovod.common",
    "horovod.runner",
    "horovod.runner.common",
    "horovod.runner.common.util",
    "horovod.runner.util",
}


def install() -> None:
    """From now on `horovod` is rdmacoll's, also where Horovod is installed. Again: does nothing.

    RuntimeError: another `horovod` has been imported already.
    """
    if any(getattr(finder, "stands_for", None) == "horovod" for finder in sys.meta_path):
        return
    if (other := sys.modules.get("horovod")) is not None:
        where = getattr(other, "__file__", None)
        raise RuntimeError(
            f"rdmacoll.horovod.alias.install(): {where} has been imported as horovod already; "
            "call it before anything imports horovod"
        )
    sys.meta_path.insert(0, _Alias())


class _Alias:
    """Finds these modules, and loads them."""

    stands_for = "horovod"

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> Any:
        """ModuleNotFoundError for what Horovod has and rdmacoll does not."""
        if name.partition(".")[0] != self.stands_for:
            return None
        if name not in PACKAGES and name not in MODULES:
            raise ModuleNotFoundError(
                f"{name}: rdmacoll has the face of horovod.torch only, and no {name}", name=name
            )
        # It is a loader by its methods: importlib.abc, which types it, takes 10 ms to import.
        loader: Any = self
        return ModuleSpec(name, loader, is_package=name in PACKAGES)

    def create_module(self, _spec: ModuleSpec) -> None:
        """Python makes an empty one."""

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name in MODULES:
            self._replace(name)
        if name in ("horovod", "horovod.runner"):
            module.__dict__["run"] = run
        if name == "horovod":
            module.__dict__["__version__"] = VERSION
            self._say_what_is_hidden()

    def _replace(self, name: str) -> None:
        """Python takes what is in sys.modules then, and not the empty module."""
        sys.modules[name] = import_module(MODULES[name])

    def _say_what_is_hidden(self) -> None:
        """On rank 0, and not in the processes that multiprocessing starts there."""
        if os.environ.get("RANK", "0") != "0" or "__mp_main__" in sys.modules:
            return
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec("horovod", None) for finder in others)
        where = next((spec.origin for spec in specs if spec is not None and spec.origin), None)
        if where is not None:
            print(f"rdmacoll: `import horovod` is rdmacoll's; {where} is not used", file=sys.stderr)


def run(*_args: object, **_options: object) -> NoReturn:
    """In the place of horovod.run()."""
    raise NotImplementedError(
        "horovod.run(): rdmacoll starts no ranks from within python; start the script with "
        "rdmarun --horovod -np N script.py"
    )
