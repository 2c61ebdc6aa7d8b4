"""Counts what a class of C++ holds: one of many data members is several subjects."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from source import CPP, PREPROCESSOR, Tree, blank, is_member_initializer, without_comments

MEMBERS = 20
ABI = Path("csrc/transport/verbs/abi")  # what another library has laid down

CLASS = re.compile(r"(?:class|struct|union)\b\s*([\w:]*)\s*(?:final\s*)?(?::(?!:).*)?$", re.S)
LABEL = re.compile(r"\b(?:public|private|protected)\s*:(?!:)")
NO_DATA = re.compile(r"\b(?:static|using|friend|typedef|operator)\b|(?:class|struct|union) \w+$")
NAME = re.compile(r"(\w+)\s*(?:\[[^]]*\]\s*)*(?:\{\}\s*)?(?::\s*\w+\s*)?$")


@dataclass
class Class:
    name: str
    line: int
    members: list[str] = field(default_factory=list)


def plain(text: str) -> str:
    """Without labels, attributes and the arguments of templates, in which anything may stand."""
    text = re.sub(r"\balignas\s*\([^()]*\)|\[\[.*?\]\]", "", LABEL.sub("", text))
    text = re.sub(r"\bdecltype\s*\([^()]*\)", "T", text)
    longer = ""
    while longer != text:
        longer, text = text, re.sub(r"<[^<>]*>", "", text)
    return re.sub(r"\btemplate\b", "", text).strip()


def names_declared(statement: str) -> Iterator[str]:
    """The data members of one statement of a class; none of a function or a type.

    A pointer to a function counts as a function: a table of them is a list of calls, not a class of
    many subjects.
    """
    statement = plain(statement)
    if NO_DATA.match(statement) or NO_DATA.search(statement.partition("=")[0]):
        return
    if statement.startswith("enum"):
        return
    for declarator in re.split(r",(?![^(]*\))", statement):
        before = declarator.partition("=")[0]
        if "(" in before:
            return
        if name := NAME.search(before):
            yield name[1]


def goes_on(head: str) -> bool:
    """Whether the statement goes on after the block that opens behind this: an initializer's."""
    head = plain(head)
    before = head.partition("(")[0]
    return (
        head.count("(") != head.count(")")
        or is_member_initializer(head)
        or ("=" in before and "operator" not in before)
        or ("(" not in head and not re.match(r"(?:inline )?namespace\b|extern\b", head))
    )


def cpp_classes(text: str) -> Iterator[Class]:
    """All that are defined in it, with their own data members. A heuristic for formatted code."""
    text = PREPROCESSOR.sub(blank, without_comments(text))
    open_blocks: list[tuple[Class | None, str]] = []  # and what stood before each
    head = ""
    for match in re.finditer(r"([^{};]*)([{};])", text):
        head += match[1]
        if match[2] == "{":
            found = CLASS.match(plain(head))
            line = text.count("\n", 0, match.start(2)) + 1
            open_blocks.append((Class(found[1], line) if found else None, head))
            head = ""
        elif match[2] == "}":
            block, before = open_blocks.pop()
            head = before + "{}" if block is None and goes_on(before) else ""
            if block is not None:
                yield block
        else:
            if open_blocks and (block := open_blocks[-1][0]):
                block.members += names_declared(head)
            head = ""


def data_members(tree: Tree) -> Iterator[str]:
    """A class holds what one can keep in mind."""
    for path in tree.select(CPP, "csrc/", "torch_ext/"):
        for one in cpp_classes(tree.text(path)):
            count = len(one.members)
            if count > MEMBERS and ABI not in path.parents:
                yield f"{path}:{one.line}: {one.name} has {count} data members, more than {MEMBERS}"
