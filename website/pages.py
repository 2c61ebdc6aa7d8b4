"""The pages that are not files of docs/: what is in each, and where in the repository it is from.

Floor: website/. Nothing here knows of mkdocs.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AT_THE_TOP = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
# Folders of programs that are on one page, one below the other, and the page's beginning.
PROGRAMS = {
    "examples": "examples.md",
    "tests/frameworks/recipes": "recipes.md",
}
BEGINNINGS = {
    "examples": "# Examples\n\nThey are numbered; continuous integration runs all of them.\n",
    "tests/frameworks/recipes": """# Recipes for frameworks

The scripts that a test runs on gloo, on rdma by its name, and with `--as-gloo`; results are equal.
[Training frameworks](FRAMEWORKS.md) says what each needs.
""",
}
# The page of a module, and its title.
MODULES = {
    "rdmacoll": "Groups, failures, the heap",
    "rdmacoll.elastic": "Elastic training",
    "rdmacoll.ops": "Operators",
    "rdmacoll.remote": "Remote memory",
    "rdmacoll.ps": "Parameter server",
    "rdmacoll.files.filesystem": "Files",
    "rdmacoll.horovod": "Horovod",
    "rdmacoll.horovod.elastic": "Horovod, elastic",
    "rdmacoll.horovod.byteps": "BytePS",
}


def made() -> dict[str, str]:
    """The text of each page by its path on the site."""
    texts = {page: (ROOT / file).read_text() for file, page in AT_THE_TOP.items()}
    texts |= {page: _programs(folder) for folder, page in PROGRAMS.items()}
    texts |= {_module_page(name): _interface(name, title) for name, title in MODULES.items()}
    return texts


def interfaces() -> Iterator[tuple[str, str, list[str]]]:
    """Each module that has a page, the page, and what of the module's __all__ is to be on it."""
    elsewhere = {"__version__", *(module.rpartition(".")[2] for module in MODULES)}
    for module in MODULES:
        yield module, _module_page(module), [n for n in _offered(module) if n not in elsewhere]


def page_of(path: str) -> str | None:
    """The page of a file or folder of the repository; None if it has none."""
    if path in AT_THE_TOP:
        return AT_THE_TOP[path]
    for folder, page in PROGRAMS.items():
        if path == folder or path.startswith(folder + "/"):
            return page
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def origin(page: str) -> str:
    """The file of the repository whose text a page shows; links in it start there."""
    for file, shown_as in AT_THE_TOP.items():
        if page == shown_as:
            return file
    return f"docs/{page}"


def _programs(folder: str) -> str:
    """Each program: what it says of itself, and its text, which a click opens."""
    parts = [BEGINNINGS[folder]]
    for path in sorted((ROOT / folder).glob("*.py")):
        text = path.read_text()
        about = inspect.cleandoc(ast.get_docstring(ast.parse(text)) or "")
        code = textwrap.indent(f"```python\n{text}```", "    ")
        parts.append(f'## {path.name}\n\n{about}\n\n??? example "{path.name}"\n\n{code}\n')
    return "\n".join(parts)


def _interface(module: str, title: str) -> str:
    return f"# {title}\n\n`{module}`\n\n::: {module}\n"


def _module_page(module: str) -> str:
    return f"python/{module.removeprefix('rdmacoll.')}.md"


def _offered(module: str) -> list[str]:
    """What the module lists in __all__, read without importing it."""
    stem = ROOT / module.replace(".", "/")
    path = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
    for line in ast.parse(path.read_text()).body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(line.value)
            return names
    return []
