"""The hook by which every python that has this folder on PYTHONPATH finds rdmacoll as `horovod`.

Then the folder is taken off sys.path, and the hook of this name that python would have run without
it runs: the user's, or that of the system. --preload has a hook too, which runs this one.
Floor: rdmacoll/horovod/alias. Thread: the main one.
"""

import importlib.util
import os
import site
import sys

_folder = os.path.dirname(__file__)
_spec = importlib.util.spec_from_file_location("_alias", os.path.join(_folder, "__init__.py"))
assert _spec is not None and _spec.loader is not None
_alias = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_alias)
_alias.install()

sys.path.remove(_folder)
sys.path_importer_cache.pop(_folder, None)
_hook = sys.modules.pop("sitecustomize")
site.execsitecustomize()
sys.modules.setdefault("sitecustomize", _hook)
