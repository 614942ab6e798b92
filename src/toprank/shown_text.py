"""Text of unknown origin, such as names in files, as terminals and shells may get it."""

from __future__ import annotations

import shlex


def printable(text: str, *, lines: bool = False) -> str:
    """Text without characters that a terminal obeys: each is shown by its escape, but for the ends of `lines`."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or (lines and char == "\n") else char.encode("unicode_escape").decode()
        for char in text
    )


def shell_word(text: str) -> str:
    """Text as one word of a command, for hints that are copied into a shell.

    It is in quotes where a shell would see more in it; if it cannot be printed, in those of ``$'...'``.
    """
    return shlex.quote(text) if text.isprintable() else f"$'{''.join(map(_in_shell_quotes, text))}'"


def _in_shell_quotes(char: str) -> str:
    code = ord(char)
    if char.isprintable():
        return f"\\{char}" if char in "\\'" else char
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8, as Python keeps it
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
