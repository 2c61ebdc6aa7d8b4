"""Reads the tree for the rules: which files are ours, C++ without comments, function lengths."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDERS = ["rdmacoll", "csrc", "torch_ext", "launcher", "building", "tests", "examples"]
FOLDERS += ["benchmarks", "docs", "website"]
FILES = ["Makefile", "CMakeLists.txt", "setup.py", "pyproject.toml"]
CPP = {".cc", ".h"}
CODE = CPP | {".py", ".pyi", ".sh", ".txt", ".toml", ""}  # no suffix: Makefile, scripts


@dataclass(frozen=True)
class Tree:
    root: Path

    @cache  # noqa: B019  (a tree lives as long as the test run)
    def files(self) -> list[Path]:
        """Every file of ours, relative to the root."""
        found: list[Path] = []
        for folder in [*FOLDERS, ".ci"]:
            found += (self.root / folder).rglob("*")
        found += [self.root / name for name in FILES]
        found += self.root.glob("*.md")
        return sorted(
            path.relative_to(self.root)
            for path in found
            if path.is_file() and path.suffix in CODE | {".md"} and "__pycache__" not in path.parts
        )

    def select(self, suffixes: set[str], *under: str) -> Iterator[Path]:
        for path in self.files():
            if path.suffix in suffixes and (not under or path.as_posix().startswith(under)):
                yield path

    @cache  # noqa: B019
    def text(self, path: Path) -> str:
        return (self.root / path).read_text()

    def lines(self, path: Path) -> Iterator[tuple[int, str]]:
        return enumerate(self.text(path).splitlines(), 1)

    def code_lines(self, path: Path) -> Iterator[tuple[int, str]]:
        """C++ lines without comments and literals."""
        return enumerate(without_comments(self.text(path)).splitlines(), 1)

    def includes(self, path: Path) -> Iterator[tuple[int, str, bool]]:
        """(line, header, whether it is quoted)."""
        for number, line in self.lines(path):
            if match := re.match(r'\s*#\s*include\s*([<"])([^>"]+)', line):
                yield number, match[2], match[1] == '"'


LITERAL_OR_COMMENT = re.compile(
    r"""//[^\n]* | /\*.*?\*/            # comments
      | R"(\w*)\(.*?\)\1"               # raw strings
      | "(?:\\.|[^"\\\n])*"             # strings
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'  # characters, not the ' inside 1'000
    """,
    re.S | re.X,
)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)


def blank(match: re.Match[str]) -> str:
    return " " + "\n" * match[0].count("\n")


def without_comments(text: str) -> str:
    return LITERAL_OR_COMMENT.sub(blank, text)


@dataclass(frozen=True)
class Function:
    line: int
    lines: int


def python_functions(text: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield Function(node.lineno, node.end_lineno - node.lineno + 1)


INITIALIZER_LIST = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:)")
SCOPE = re.compile(r"(?:class|struct|union|enum|namespace)\b[^()]*$|extern\s*$")


def is_function(head: str) -> bool:
    """Whether a block that opens after `head`, outside of functions, is a function's body."""
    head = re.sub(r"alignas\s*\([^)]*\)|\[\[.*?\]\]|template\s*<[^{}]*?>\s*(?=[\w\[])", "", head)
    return "(" in head and not SCOPE.match(head.strip())


def is_member_initializer(head: str) -> bool:
    """Whether the block is a member's, as {1} in Foo() : a_{1} {}, and the body is yet to come."""
    return bool(INITIALIZER_LIST.search(head)) and bool(re.search(r"[\w>]\s*$", head))


def cpp_functions(text: str) -> Iterator[Function]:
    """A brace heuristic, good enough for formatted code: outermost blocks that follow a (...)."""
    text = PREPROCESSOR.sub(blank, without_comments(text))
    depth = 0  # braces open since a function or an initializer began; 0: in a scope
    head, head_line, line = "", 1, 1
    in_function = False
    for character in text:
        if depth:
            depth += (character == "{") - (character == "}")
            if not depth and in_function:
                yield Function(head_line, line - head_line + 1)
            if not depth:
                head = "" if in_function else head + "}"
        elif character == "{":
            in_function = is_function(head) and not is_member_initializer(head)
            depth = int(in_function or is_member_initializer(head))
            head = head if depth else ""
        elif character in ";}":
            head = ""
        else:
            if not head.strip():
                head_line = line
            head += character
        line += character == "\n"
