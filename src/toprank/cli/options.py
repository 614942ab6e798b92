"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

_TABLE = "Table"
_OUTPUT = "Output"

Data = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="The table: CSV, Parquet, svmlight or NumPy, by the ending of its name; text also as .gz, .bz2 or .xz. To "
        "score or to measure rows, - is standard input.",
        show_default=False,
    ),
]
Model = Annotated[str, typer.Option("--model", "-m", metavar="FILE", help="The saved model.", show_default=False)]
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", metavar="COLUMN", help="Column of the labels.", rich_help_panel=_TABLE),
]
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="The positive label; all others are negative. Not needed for 0 and 1, -1 and 1, false and true.",
        rich_help_panel=_TABLE,
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COLUMN", help="Column that identifies a row; it is not learned from.", rich_help_panel=_TABLE
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column not to learn from; may be repeated.", rich_help_panel=_TABLE),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of numbers that are codes, not amounts; may be repeated.",
        rich_help_panel=_TABLE,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT", help="csv, parquet, svmlight or numpy, if the name does not say it.", rich_help_panel=_TABLE
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(metavar="CHARACTER", help="Delimiter of CSV; by default found.", rich_help_panel=_TABLE),
]
ZeroBased = Annotated[
    bool, typer.Option("--zero-based", help="Indices of svmlight start at 0.", rich_help_panel=_TABLE)
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=_OUTPUT)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes and no progress bar.", rich_help_panel=_OUTPUT)]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all random choices.")]
Jobs = Annotated[int, typer.Option(help="How many fits at the same time; -1: as many as there are cores.")]
