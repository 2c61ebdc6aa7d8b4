"""Sizes in bytes as people write and read them: 4096, 64K, 512M, 8G. Pure.

Floor: rdmacoll/base. Thread: any.
"""

DIGITS = 19  # of the largest size, which the engine reads as a signed number of 64 bits
SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def parse_size(text: str) -> int:
    """0 or more. ValueError says what is wrong with the text."""
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if unit not in SHIFTS or not (number.isascii() and number.isdecimal()):
        raise ValueError(f"{text!r} is not a size; give bytes, or 64K, 512M, 8G")
    size = int(number[: DIGITS + 1]) << SHIFTS[unit]
    if len(number) > DIGITS or size >= 1 << 63:
        raise ValueError(f"{text!r} is more than any memory; give bytes, or 64K, 512M, 8G")
    return size


def text_of_size(size_bytes: int) -> str:
    for unit in "TGMK":
        scaled = size_bytes / (1 << SHIFTS[unit])
        if scaled >= 1:
            return f"{scaled:.4g} {unit}B"
    return f"{size_bytes} B"
