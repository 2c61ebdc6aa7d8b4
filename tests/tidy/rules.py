"""The rules of the house: CONTRIBUTING.md as code. What may see what is in floors.py,
what classes hold in members.py, who knows transports and algorithms in touches.py.

A rule takes the tree and yields complaints, "path:line: what is wrong".
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from floors import floors, link_edges, python_floors
from members import data_members
from source import CODE, CPP, Tree, cpp_functions, python_functions
from touches import touches

Rule = Callable[[Tree], Iterator[str]]

FILE_LINES = 400
FUNCTION_LINES = 69
COLUMNS = 100
PAGE_COLUMNS = 120
FOLDER_SOURCES = 20  # x.h and x.cc are one
MAX_VIRTUALS = 21  # of what a transport may be asked for


def engine_is_alone(tree: Tree) -> Iterator[str]:
    """The engine includes neither torch nor Python nor MPI."""
    for path in tree.select(CPP, "csrc/"):
        for line, header, _ in tree.includes(path):
            if re.match(r"torch/|c10/|ATen/|pybind11/|Python\.h|mpi\.h|torch_ext/", header):
                yield f"{path}:{line}: csrc/ may not include {header}"


# Where a name may occur in C++ or Python, and how it is recognised there.
CONFINED = {
    "ibv_": (CPP, r"\bibv_\w+", ("csrc/transport/verbs/", "benchmarks/verbs/", "tests/")),
    "getenv": (CPP, r"\b(?:secure_)?getenv\b|\benviron\b", ("csrc/base/settings.cc", "tests/")),
    "torch": (
        {".py"},
        r"^\s*(?:import|from) torch\b",
        ("rdmacoll/", "launcher/agent/store.py", "tests/", "examples/", "benchmarks/", "setup.py"),
    ),
    "mpi4py": (
        {".py"},
        r"^\s*(?:import|from) mpi4py\b",
        ("launcher/", "rdmacoll/bench/", "tests/"),
    ),
}


def confined(tree: Tree) -> Iterator[str]:
    """Some libraries and calls belong in one place."""
    for name, (suffixes, pattern, places) in CONFINED.items():
        for path in tree.select(suffixes):
            if path.as_posix().startswith(places):
                continue
            lines = tree.code_lines(path) if suffixes == CPP else tree.lines(path)
            for line, text in lines:
                if re.search(pattern, text):
                    yield f"{path}:{line}: {name} belongs in {', '.join(places)} only"


def header_comments(tree: Tree) -> Iterator[str]:
    """Every file says first what lives in it; a header of the engine also names its floor."""
    for path in tree.select(CODE):
        lines = [line for line in tree.text(path).splitlines() if not line.startswith("#!")]
        first = lines[0] if lines else ""
        if not re.match(r'// \S|# \S|"""\S', first):
            yield f"{path}:1: begins without a comment that says what lives here"
        comment = " ".join(line for line in lines[:20] if line.startswith("//"))
        if path.suffix == ".h" and path.parts[0] == "csrc" and "Floor: " not in comment:
            yield f'{path}:1: the header comment does not name its floor ("Floor: ...")'


def sizes(tree: Tree) -> Iterator[str]:
    """Small files of small functions."""
    for path in tree.select(CODE):
        text = tree.text(path)
        lines = text.count("\n")
        if lines > FILE_LINES:
            yield f"{path}:{lines}: {lines} lines, more than {FILE_LINES}"
        functions = (
            cpp_functions(text)
            if path.suffix in CPP
            else python_functions(text)
            if path.suffix == ".py"
            else ()
        )
        for function in functions:
            if function.lines > FUNCTION_LINES:
                yield (
                    f"{path}:{function.line}: a function of {function.lines} lines, "
                    f"more than {FUNCTION_LINES}"
                )


def rooms(tree: Tree) -> Iterator[str]:
    """A folder of more sources than one can take in at a glance holds two subjects."""
    sources: dict[str, set[str]] = {}
    for path in tree.select(CPP | {".py"}):
        if path.parts[0] != "tests":
            sources.setdefault(path.parent.as_posix(), set()).add(path.stem)
    for folder, names in sorted(sources.items()):
        if len(names) > FOLDER_SOURCES:
            yield f"{folder}:1: {len(names)} sources, more than {FOLDER_SOURCES}"


UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")


def lines(tree: Tree) -> Iterator[str]:
    """Width, blanks at the end, and no work left behind in comments."""
    for path in tree.files():
        text = tree.text(path)
        if text and not text.endswith("\n"):
            yield f"{path}:{text.count(chr(10)) + 1}: no newline at the end of the file"
        for number, line in tree.lines(path):
            most = COLUMNS if path.suffix in CODE else PAGE_COLUMNS
            if len(line) > most:
                yield f"{path}:{number}: {len(line)} columns, more than {most}"
            if line != line.rstrip():
                yield f"{path}:{number}: blanks at the end of the line"
            if UNFINISHED.search(line):
                yield f"{path}:{number}: unfinished: finish it or file it"


def links(tree: Tree) -> Iterator[str]:
    """Links between documents lead somewhere."""
    for path in tree.select({".md"}):
        for number, line in tree.lines(path):
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", line):
                if ":" not in target and not (tree.root / path.parent / target).exists():
                    yield f"{path}:{number}: {target} does not exist"


FILE_NAME = re.compile(r"(?<![\w/.<])((?:csrc|torch_ext|[a-z]\w*/)*\w+\.(?:cc|h))\b")


def named_files(tree: Tree) -> Iterator[str]:
    """A file of C++ that a comment names is there, under this name or with folders before it."""
    ends = {
        "/".join(path.parts[start:])
        for path in tree.select(CPP)
        for start in range(len(path.parts))
    }
    for path in tree.select(CPP):
        for number, line in tree.lines(path):
            _, _, comment = line.partition("//")
            for name in FILE_NAME.findall(comment):
                if name not in ends and not name[0].isupper():
                    yield f"{path}:{number}: {name} does not exist"


def dead_headers(tree: Tree) -> Iterator[str]:
    """A header that nobody includes is dead."""
    included = {header for path in tree.select(CPP) for _, header, _ in tree.includes(path)}
    for path in tree.select({".h"}, "csrc/", "torch_ext/"):
        if path.as_posix() not in included:
            yield f"{path}:1: nobody includes it"


OWN = re.compile(r"^(?:constexpr .*?\b(k\w+)\b[ {\[]|(?!\s|namespace)([\w:<>,&* ]+ [&*]?\w+\(.*))")


def own_names(tree: Tree) -> Iterator[str]:
    """The sanitizers build a folder's files as one, where each name is defined once."""
    first: dict[tuple[Path, str], Path] = {}
    for path in sorted(tree.select({".cc"}, "csrc/", "torch_ext/")):
        is_own = False
        for line, text in tree.lines(path):
            is_own = (is_own or text == "namespace {") and text != "}  // namespace"
            match = OWN.match(text) if is_own else None
            name = match and (match[1] or match[2])
            if name and first.setdefault((path.parent, name), path) != path:
                also = first[path.parent, name]
                yield f"{path}:{line}: {also} defines this, too; give it another name: {name}"


def tests_exist(tree: Tree) -> Iterator[str]:
    """Every floor that has code has tests: a folder of its own, or for transports the contract."""
    for floor in sorted({path.parent for path in tree.select({".cc"}, "csrc/")}):
        top = floor.parts[1]
        folder = "tests/contract/" if top == "transport" else f"tests/unit/{top}/"
        if not any(tree.select({".cc"}, folder)):
            yield f"{floor}:1: no test in {folder}"


def test_names(tree: Tree) -> Iterator[str]:
    """pytest tells test files apart by their names alone: two of one name, and it collects none."""
    first: dict[str, str] = {}
    for path in sorted(tree.select({".py"}, "tests/")):
        if path.name.startswith("test_") and first.setdefault(path.name, str(path)) != str(path):
            yield f"{path}:1: {first[path.name]} has this name, too"


def test_namespaces(tree: Tree) -> Iterator[str]:
    """A test in C++ has a namespace of its own: CI compiles several as one, with names alike."""
    for path in tree.select({".cc"}, "tests/"):
        own = rf"^namespace rdmacoll(?:::\w+)*::{path.stem} {{$"
        is_test = path.stem.endswith("_test") and not path.stem.endswith("_for_test")
        if is_test and not re.search(own, tree.text(path), re.M):
            yield f"{path}:1: has no namespace rdmacoll::{path.stem}"


def packages(tree: Tree) -> Iterator[str]:
    """Every Python package is in pyproject.toml's list: plain installs would lack it otherwise."""
    project = tree.text(tree.root / "pyproject.toml")
    listed = re.search(r"^packages = \[(.*?)\]", project, re.M | re.S)
    names = set(re.findall(r'"([^"]+)"', listed[1])) if listed else set()
    for path in tree.select({".py"}, "rdmacoll/", "launcher/"):
        folder = ".".join(path.parent.parts)
        name = folder if folder.startswith("rdmacoll") else "rdmacoll." + folder
        if name not in names:
            yield f"{path}:1: package {name} is not in pyproject.toml's packages"


def virtuals(tree: Tree) -> Iterator[str]:
    """What every transport answers is little, so that another one is little work."""
    path = Path("csrc/transport/transport.h")
    if path in tree.files():
        text = "\n".join(text for _, text in tree.code_lines(path))
        count = len(re.findall(r"\bvirtual\b", text))
        if count > MAX_VIRTUALS:
            yield f"{path}:1: {count} virtual functions, more than {MAX_VIRTUALS}"


RULES: list[Rule] = [
    floors,
    link_edges,
    python_floors,
    engine_is_alone,
    confined,
    header_comments,
    sizes,
    rooms,
    lines,
    links,
    named_files,
    dead_headers,
    own_names,
    tests_exist,
    test_names,
    test_namespaces,
    packages,
    data_members,
    touches,
    virtuals,
]
