"""What the commands say: results on standard output, notes, progress and errors on standard error."""

from __future__ import annotations

import functools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, get_type_hints

import typer

from toprank import log
from toprank.cli.standard_streams import DEBUG, LostOutput
from toprank.exceptions import Message, Parameter, message_of
from toprank.shown_text import printable, shell_word

_Result = TypeVar("_Result")
_Command = Callable[..., Any]
# The command that runs: its options are those that a message may name.
_running: ContextVar[_Command | None] = ContextVar("running", default=None)


class Output:
    """Where a command writes to: results as text or JSON, notes and progress unless quiet."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Say something that the user should know; once."""
        text = told(text)
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.quiet:
            _say(f"note: {text}", err=True)

    def result(self, record: dict[str, Any], text: str) -> None:
        """Print the result, for machines with the notes."""
        if self.as_json:
            from toprank.plain_data import plain

            record = {**record, "notes": self.notes}
            typer.echo(json_text(plain(record)))
        else:
            _say(text)

    @property
    def shows_progress(self) -> bool:
        """Whether there is someone to show progress to."""
        return not self.quiet and sys.stderr.isatty()

    @contextmanager
    def progress(self, title: str, total: int | None = None) -> Iterator[Callable[..., None]]:
        """A bar; call what it gives with the position, out of `total`, and perhaps with another title."""
        if not self.shows_progress:
            yield lambda position, title="": None
            return
        from rich.console import Console
        from rich.progress import Progress, TextColumn

        about = TextColumn("{task.description}", style="progress.description", markup=False)
        columns = (about, *Progress.get_default_columns()[1:])
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(printable(title), total=total)
            yield lambda position, title=title: bar.update(task, completed=position, description=printable(title))

    @contextmanager
    def noted_warnings(self) -> Iterator[None]:
        """Warnings of the library become notes."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield
        for warning in caught:
            self.note(told(warning.message))


def _say(text: str, *, err: bool = False) -> None:
    """Print lines of text, whatever stands in it."""
    typer.echo(printable(text, lines=True), err=err)


def json_text(record: Any) -> str:
    """A record as JSON in which only characters stand that can be printed; others are escaped."""
    text = json.dumps(record, indent=2, allow_nan=False, ensure_ascii=False)
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def told(said: str | BaseException) -> str:
    """A message of the library with the options that the running command has."""
    text = message_of(said) if isinstance(said, BaseException) else said
    return text.told(_named) if isinstance(text, Message) else text


def _named(parameter: Parameter) -> str:
    command = _running.get()
    option = None if command is None else _options_of(command).get(parameter.name)
    if option is None:
        return parameter.python
    if isinstance(parameter.value, bool):
        return option if parameter.value else option.replace("--", "--no-", 1)
    return option if parameter.value is None else f"{option} {shell_word(parameter.value)}"


@functools.cache
def _options_of(command: _Command) -> dict[str, str]:
    """Names of the options of a command by those of its parameters."""
    options = {}
    for name, hint in get_type_hints(command, include_extras=True).items():
        for one in getattr(hint, "__metadata__", ()):
            if isinstance(one, typer.models.OptionInfo):
                # inside Annotated the first name takes the place of the default
                declared = (one.default, *(one.param_decls or ()))
                long = [part for part in declared if isinstance(part, str) and part.startswith("--")]
                options[name] = long[0].partition("/")[0] if long else f"--{name.replace('_', '-')}"
    return options


def number(value: float, form: str) -> str:
    """A number for a table, which may be nan."""
    return "-" if value != value else format(value, form)


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
        before = _running.set(command)
        try:
            with warnings.catch_warnings(), log.quiet(bool(kwargs.get("quiet"))):
                warnings.simplefilter("ignore")  # those that concern the user become notes
                return command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter, LostOutput):
            raise
        except KeyboardInterrupt:
            _say("stopped by the keyboard", err=True)
            raise typer.Exit(130) from None
        except BaseException as error:
            # a panic of native code is no Exception
            if os.environ.get(DEBUG) or not (isinstance(error, Exception) or type(error).__name__ == "PanicException"):
                raise
            _say(f"error: {printable(sentence(error))}", err=True)
            raise typer.Exit(1) from None
        finally:
            _running.reset(before)

    return run


def sentence(error: BaseException) -> str:
    """What went wrong, in one line."""
    text = str(error.args[1]) if isinstance(error, OSError) and len(error.args) > 1 else told(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename!r}: {text}"
    text = "; ".join([text, *getattr(error, "__notes__", ())])
    text = " ".join(line.strip() for line in text.splitlines())
    if isinstance(error, MemoryError):
        return "there is not enough memory; use fewer rows or columns"
    if isinstance(error, ValueError | TypeError | OSError | ImportError):
        return text or type(error).__name__
    return f"this should not happen ({type(error).__name__}: {text[:200]}); set {DEBUG}=1 to see where, and report it"
