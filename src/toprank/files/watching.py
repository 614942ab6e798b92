"""Who is told what happens while a file is worked on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol


class Watcher(Protocol):
    """Who is told what happens while a file is worked on."""

    @property
    def shows_progress(self) -> bool:
        """Whether someone looks at progress."""

    def note(self, text: str) -> None:
        """Something that the user should know."""

    def progress(self, title: str, total: int | None = None) -> AbstractContextManager[Callable[..., Any]]:
        """A context; the function that it gives is called with positions out of `total`, and perhaps a new title."""


class Warner:
    """Notes become warnings; progress is not shown."""

    shows_progress = False

    def note(self, text: str) -> None:
        """Warn."""
        warnings.warn(text, UserWarning, stacklevel=4)

    def progress(self, title: str, total: int | None = None) -> AbstractContextManager[Callable[..., Any]]:
        """Show nothing."""
        return nullcontext(lambda position, title="": None)
