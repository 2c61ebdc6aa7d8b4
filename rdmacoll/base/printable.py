"""Makes text safe to print that another process has written, as csrc/base/printable.h does."""

MOST = 2048  # characters


def printable(text: str, most: int = MOST) -> str:
    """Characters that a terminal would obey become \\xNN, byte for byte. What would then be longer
    than `most` is cut and ends in "..."."""
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
