"""What is wrong with a line, in words."""

from __future__ import annotations

from toprank.exceptions import Message
from toprank.files._lines import IS_INFINITE, IS_MISSING
from toprank.files.labels import ZERO_ONE, Labels
from toprank.files.source import MISSING_WORDS


def excerpt(text: str) -> str:
    """A text for a message, not too long."""
    return text if len(text) <= 40 else f"{text[:37]}..."


def shown(content: bytes, start: int, end: int) -> str:
    """A part of a line for a message; it may be very long, and its beginning is enough."""
    return excerpt(content[start : min(end, start + 200)].decode("utf-8", errors="replace"))


def label_reason(text: str, labels: Labels) -> str:
    """What is wrong with a label, in words."""
    if text.lower() in MISSING_WORDS:
        return "the label is missing"
    if labels.mode == ZERO_ONE:
        return Message("the label {text!r} is none of 1, 0 and -1; name the positive label by {positive=}", text=text)
    return Message("the label {text!r} is not a number; pass {positive=} as text if labels are text", text=text)


def number_reason(what: int, where: str, text: str, remedy: str) -> str:
    """What is wrong with a number, in words."""
    if what == IS_MISSING:
        return Message("{where} has no value; pass {fill_missing=} for a number to stand for it", where=where)
    if what == IS_INFINITE:
        return f"{where} has {text!r}, which is not finite"
    return Message("{where} has {text!r}, which is not a number; {remedy}", where=where, text=text, remedy=remedy)
