"""Options of other launchers for which there is only a word, and how it is said. Pure.

Floor: launcher/command/flags. Thread: any.
"""

import textwrap
from collections.abc import Mapping, Sequence

# Of each option how many values it has; and why it changes nothing, or what to give in its place.
Words = Mapping[str, tuple[int, str]]


def about_not_needed(flags: Sequence[str], words: Words) -> list[str]:
    """A line for each reason."""
    reasons: dict[str, list[str]] = {}
    for flag in dict.fromkeys(flags):
        reasons.setdefault(words[flag][1], []).append(flag)
    return [
        f"{', '.join(ones)} {'changes' if len(ones) == 1 else 'change'} nothing: {why}"
        for why, ones in reasons.items()
    ]


def list_them(idle: Words, refused: Words) -> str:
    """For --help: they are too many to have lines of their own."""
    texts = (
        f"These change nothing, and it is said why: {', '.join(idle)}.",
        f"These are errors that say what to give instead: {', '.join(refused)}.",
    )
    return "\n".join(textwrap.fill(text, 78, break_on_hyphens=False) for text in texts)
