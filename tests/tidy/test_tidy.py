"""The tree keeps the rules of the house. That each rule can fail at all is in test_rules.py."""

from pathlib import Path

import pytest
from rules import RULES, Rule
from source import Tree

TREE = Tree(Path(__file__).resolve().parents[2])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_tree(rule: Rule) -> None:
    complaints = list(rule(TREE))
    assert not complaints, "\n" + "\n".join(complaints)
