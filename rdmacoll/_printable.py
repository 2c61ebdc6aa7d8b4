"""Text that another process has written, before it is shown. csrc/base/printable.h is the same for
C++. No torch: the launcher imports it too.
"""

MOST = 2048  # characters


def printable(text: str, most: int = MOST) -> str:
    """Without what could move a cursor, recolour or rewrite what a terminal shows: that is spelled
    out as \\xNN, byte for byte. What would be longer than `most` ends in "..."."""
    if len(text) <= most and text.isprintable():
        return text
    parts: list[str] = []
    length = 0
    for character in text[: most + 1]:
        part = character if character.isprintable() else _spelled_out(character)
        length += len(part)
        if length > most:
            return "".join(parts) + "..."
        parts.append(part)
    return "".join(parts)


def _spelled_out(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogatepass"))
