"""What the commands say: results on standard output, notes, progress and errors on standard error."""

from __future__ import annotations

import functools
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer

_Result = TypeVar("_Result")
# Remedies of the library name its keywords; here they are options.
_KEYWORD = re.compile(
    r"\b(max_fpr|confidence|tau|alpha|beta|k|kernel|gamma|surrogate|cv|positive|features|fill_missing|on_bad_line|"
    r"n_features|zero_based|target|checkpoint|batch|window|every|format|delimiter)=(?:'([^']*)'|([\w.+-]*))"
)
_WORDS = {"resume=False": "--no-resume", "zero_based=True": "--zero-based", "toprank.load": "toprank info"}
_DEBUG = "TOPRANK_DEBUG"


class Output:
    """Where a command writes to.

    Parameters
    ----------
    as_json : bool
        Print results as JSON.
    quiet : bool
        No notes, no progress.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Say something that the user should know; once."""
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.quiet:
            typer.echo(f"note: {text}", err=True)

    def result(self, record: dict[str, Any], text: str) -> None:
        """Print the result, for machines with the notes."""
        if self.as_json:
            record = {**record, "notes": self.notes}
            typer.echo(json.dumps(plain(record), indent=2, allow_nan=False, ensure_ascii=False))
        else:
            typer.echo(text)

    @property
    def shows_progress(self) -> bool:
        """Whether there is someone to show progress to."""
        return not self.quiet and sys.stderr.isatty()

    @contextmanager
    def progress(self, title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """A bar; call what it gives with the position, out of `total`."""
        if not self.shows_progress:
            yield lambda position: None
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(title, total=total)
            yield lambda position: bar.update(task, completed=position)

    @contextmanager
    def noted_warnings(self) -> Iterator[None]:
        """Warnings of the library become notes."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield
        for warning in caught:
            self.note(as_options(str(warning.message)))


def plain(item: Any) -> Any:
    """An item as JSON can hold it; numbers that are not finite become null."""
    if isinstance(item, dict):
        return {str(key): plain(value) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return [plain(value) for value in item]
    if hasattr(item, "tolist") and not isinstance(item, type):
        return plain(item.tolist())
    if isinstance(item, float):
        return item if math.isfinite(item) else None
    return item if item is None or isinstance(item, bool | int | str) else str(item)


def as_options(text: str) -> str:
    """A message of the library in the words of the command line."""
    for word, option in _WORDS.items():
        text = text.replace(word, option)
    return _KEYWORD.sub(lambda match: f"--{match[1].replace('_', '-')} {match[2] or match[3] or ''}".rstrip(), text)


def table(rows: list[list[str]], *, indent: str = "  ") -> str:
    """Rows of cells as aligned text; the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        indent + "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                           for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows
    )  # fmt: skip


def guarded(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """A command whose errors are one sentence and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> _Result:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # those that concern the user become notes
                return command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except KeyboardInterrupt:
            typer.echo("stopped by the keyboard", err=True)
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # the reader, such as head, has what it wants; nothing must be written at the exit either
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except Exception as error:
            if os.environ.get(_DEBUG):
                raise
            typer.echo(f"error: {sentence(error)}", err=True)
            raise typer.Exit(1) from None

    return run


def sentence(error: BaseException) -> str:
    """What went wrong, in one line."""
    text = str(error.args[1] if isinstance(error, OSError) and len(error.args) > 1 else error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename!r}: {text}"
    text = as_options(" ".join(text.split()))
    if isinstance(error, MemoryError):
        return "there is not enough memory; use fewer rows or columns"
    if isinstance(error, ValueError | TypeError | OSError | ImportError):
        return text or type(error).__name__
    return f"this should not happen ({type(error).__name__}: {text[:200]}); set {_DEBUG}=1 to see where, and report it"
