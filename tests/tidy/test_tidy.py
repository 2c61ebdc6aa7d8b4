"""The tree keeps the rules of the house. That each rule can fail at all is in test_rules.py."""

from pathlib import Path

import pytest
from rules import RULES, Rule
from source import Tree
from touches import algorithms, transports

TREE = Tree(Path(__file__).resolve().parents[2])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_tree(rule: Rule) -> None:
    complaints = list(rule(TREE))
    assert not complaints, "\n" + "\n".join(complaints)


def test_transports_and_algorithms_are_found() -> None:
    names = {subject.name for subject in (*transports(TREE), *algorithms(TREE))}
    assert {"shm", "verbs", "sim", "ring", "halving_doubling"} <= names
