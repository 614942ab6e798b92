"""Docstrings name texts that several have in common, such as {pos_label}; these are filled in at definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import cleandoc, getdoc, isfunction
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])


def filled(text: str | None, texts: Mapping[str, str]) -> str:
    """A docstring with the texts in place of their names in braces."""
    text = cleandoc(text or "")
    for name, part in texts.items():
        text = text.replace("{" + name + "}", part)
    return text


def documented(texts: Mapping[str, str]) -> Callable[[Function], Function]:
    """Decorate functions whose docstrings name some of the texts."""

    def fill(function: Function) -> Function:
        function.__doc__ = filled(function.__doc__, texts)
        return function

    return fill


def fill_class(cls: type, texts: Mapping[str, str]) -> None:
    """Fill in the docstring of a class, which may be an inherited one, and those of its methods."""
    cls.__doc__ = filled(getdoc(cls), texts)
    for member in vars(cls).values():
        function = getattr(
            member, "__wrapped__", getattr(member, "fn", member)
        )  # of a class method, or of available_if
        if isfunction(function) and "{" in (function.__doc__ or ""):
            documented(texts)(function)
            member.__doc__ = function.__doc__
