"""The commands, wired together."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from toprank.cli.compare import compare
from toprank.cli.compile import compile
from toprank.cli.demo import demo
from toprank.cli.evaluate import evaluate
from toprank.cli.export import export
from toprank.cli.fit import fit
from toprank.cli.info import info
from toprank.cli.report import report
from toprank.cli.score import score
from toprank.cli.stream import stream

app = typer.Typer(
    name="toprank",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _paragraphs(text: str | None) -> str:
    """A docstring as help: a line break inside a paragraph is none."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text or "").split("\n\n"))


for _command in (fit, score, evaluate, report, compare, stream, export, info, compile, demo):
    app.command(help=_paragraphs(_command.__doc__), no_args_is_help=_command not in (info, compile, demo))(_command)


def _version(wanted: bool) -> None:
    if wanted:
        from toprank import __version__

        typer.echo(f"toprank {__version__}")
        raise typer.Exit


@app.callback()
def _toprank(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Models for people who act only on the top of a list.

    Fit a model to a table, look at its report, score new rows:

    [bold]toprank fit train.csv --target fraud --model fraud.toprank --max-fpr 0.01[/bold]

    [bold]toprank report test.csv --model fraud.toprank --output report.html[/bold]

    [bold]toprank score new.csv --model fraud.toprank --output scores.csv[/bold]

    Each command explains itself by --help. Exit codes: 0 done, 1 the work could not be done, 2 wrong usage, 130
    stopped by Ctrl-C.
    """
