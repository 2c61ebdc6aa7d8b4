"""Counts the files that know a transport or an algorithm by name: one more has to touch as many.

Those of its own folder do not count, nor do plans of two levels, which an algorithm may have as
well, tests, benchmarks, the checks of CI, and pages.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from source import CODE, CPP, LITERAL_OR_COMMENT, Tree, blank

TRANSPORT_TOUCHES = 6
ALGORITHM_TOUCHES = 5
TRANSPORTS = "csrc/transport/"
ALGORITHMS = "csrc/plan/algorithms/"
OF_TWO_LEVELS = "csrc/plan/layered/"


@dataclass(frozen=True)
class Subject:
    kind: str
    name: str
    most: int
    own: str  # its folder
    named: re.Pattern[str]


def camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def transports(tree: Tree) -> Iterator[Subject]:
    """The folders in that of transports: named by folder, target of CMake, class, switch, value."""
    headers = tree.select({".h"}, TRANSPORTS)
    for name in sorted({path.parts[2] for path in headers if len(path.parts) > 3}):
        named = re.compile(
            rf"""transport/{name}\b|\btransport_{name}\b|\b{camel(name)}[A-Z]\w*
            |RDMACOLL_\w*_{name.upper()}\b|RDMACOLL_\w+={name}\b|"{name}"|'{name}'""",
            re.X,
        )
        yield Subject("transport", name, TRANSPORT_TOUCHES, f"{TRANSPORTS}{name}/", named)


def algorithms(tree: Tree) -> Iterator[Subject]:
    """The headers in the folder of algorithms: named by header, enumerator and value."""
    for name in [path.stem for path in tree.select({".h"}, ALGORITHMS)]:
        named = re.compile(
            rf"""plan/algorithms/{name}\b|\bAlgorithm::{camel(name)}\b
            |enum\ class\ Algorithm\b[^}}]*\b{camel(name)}\b
            |RDMACOLL_\w+={name}\b|"{name}"|'{name}'""",
            re.X,
        )
        yield Subject("algorithm", name, ALGORITHM_TOUCHES, ALGORITHMS, named)


def without_words(tree: Tree, path: Path) -> str:
    """A file's text without comments and, in Python, without what documents subject."""
    text = tree.text(path)
    if path.suffix in CPP:
        return LITERAL_OR_COMMENT.sub(lambda m: blank(m) if m[0][0] == "/" else m[0], text)
    if path.suffix not in {".py", ".pyi"}:
        return re.sub(r"(^|\s)#.*", "", text)
    module = ast.parse(text)
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = None
    return ast.unparse(module)


def touches(tree: Tree) -> Iterator[str]:
    """One more transport or algorithm is a folder of its own, and few lines elsewhere."""
    code = {
        path: without_words(tree, path)
        for path in tree.select(CODE)
        if path.parts[0] not in {"tests", "benchmarks"}
        and not path.as_posix().startswith(".ci/check")
    }
    for subject in (*transports(tree), *algorithms(tree)):
        files = [
            path.as_posix()
            for path, text in code.items()
            if not path.as_posix().startswith((subject.own, OF_TWO_LEVELS))
            and subject.named.search(text)
        ]
        if len(files) > subject.most:
            yield (
                f"{subject.own}:1: {len(files)} files elsewhere name the {subject.kind} "
                f"{subject.name}, more than {subject.most}: {', '.join(files)}"
            )
