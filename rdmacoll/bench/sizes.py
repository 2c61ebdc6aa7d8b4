"""Lists of sizes in bytes, as people write them: 4:256M:4, or 4,64K,1M. Pure."""

from rdmacoll.base.byte_sizes import parse_size


def parse_sizes(text: str) -> list[int]:
    """ValueError says what is wrong with the text."""
    if ":" not in text:
        return [_size(entry) for entry in text.split(",")]
    fields = text.split(":")
    if len(fields) != 3:
        raise ValueError("a range is from:to:factor, such as 4:256M:4")
    first, last = _size(fields[0]), _size(fields[1])
    if not fields[2].isdecimal() or int(fields[2]) < 2:
        raise ValueError(f"the factor {fields[2]!r} is not a whole number of 2 or more")
    if last < first:
        raise ValueError(f"the range ends ({fields[1]}) before it begins ({fields[0]})")
    sizes = []
    while first <= last:
        sizes.append(first)
        first *= int(fields[2])
    return sizes


def _size(text: str) -> int:
    size_bytes = parse_size(text)
    if size_bytes == 0:
        raise ValueError("0 bytes are nothing to measure; give 1 or more")
    return size_bytes
