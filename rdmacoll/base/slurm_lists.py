"""Slurm's short forms: `n[1-3,07-09]x,m1` for hosts, `4(x2),3` for a number per host. Pure.

Floor: rdmacoll/base. Thread: any.
"""

import itertools
import math
import re

MOST_HOSTS = 65536
_ENTRY = re.compile(r"(?:[^][,]|\[[^][]*\])+")  # commas within brackets do not end one
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_COUNT = re.compile(r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?")


def expand_hosts(text: str) -> list[str]:
    """The names in `n[1-3,07-09]x,m1`, in its order. ValueError says what cannot be read."""
    names: list[str] = []
    rest = text
    while True:
        entry = _ENTRY.match(rest)
        if entry is None:
            raise ValueError(f"a name is missing or cut off at {rest[:40]!r}")
        names += _names(entry[0], MOST_HOSTS - len(names))
        rest = rest[entry.end() :]
        if not rest:
            return names
        if rest[0] != ",":
            raise ValueError(f"a bracket is missing or cut off at {rest[:40]!r}")
        rest = rest[1:]


def _names(entry: str, most: int) -> list[str]:
    """An entry may have several brackets: `rack[0-1]n[0-3]` is eight names."""
    head, *tails = re.split(r"\[[^]]*\]", entry)
    brackets = [_ranges(text) for text in re.findall(r"\[([^]]*)\]", entry)]
    if math.prod(sum(map(len, ranges)) for ranges, _ in brackets) > most:
        raise ValueError(f"it names more than {MOST_HOSTS} hosts")
    numbers = [
        [f"{number:0{width}}" for span, width in zip(*both, strict=True) for number in span]
        for both in brackets
    ]
    return [
        head + "".join(map("".join, zip(chosen, tails, strict=True)))
        for chosen in itertools.product(*numbers)
    ]


def _ranges(bracket: str) -> tuple[list[range], list[int]]:
    """The ranges of `1-3,07-09`, and their widths: 07 has two digits, and so have 08 and 09."""
    ranges, widths = [], []
    for part in bracket.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(f"{part[:40]!r} in [{bracket[:40]}] is no number or range of them")
        ranges.append(range(int(match[1]), int(match[2] or match[1]) + 1))
        widths.append(len(match[1]))
        if not ranges[-1]:
            raise ValueError(f"{part!r} in [{bracket[:40]}] ends before it begins")
    return ranges, widths


def expand_counts(text: str) -> list[int]:
    """The numbers in `4(x2),3`: 4, 4, 3. ValueError says what cannot be read."""
    counts: list[int] = []
    for part in text.split(","):
        match = _COUNT.fullmatch(part)
        if match is None or int(match[1]) == 0:
            raise ValueError(f"{part[:40]!r} is no number above 0, nor one such as 4(x2)")
        times = int(match[2] or 1)
        if len(counts) + times > MOST_HOSTS:
            raise ValueError(f"it has more than {MOST_HOSTS} numbers")
        counts += [int(match[1])] * times
    return counts
