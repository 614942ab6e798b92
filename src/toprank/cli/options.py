"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer

of_table = partial(typer.Option, rich_help_panel="Table")
of_method = partial(typer.Option, rich_help_panel="Method")
of_threshold = partial(typer.Option, rich_help_panel="Threshold")
of_output = partial(typer.Option, rich_help_panel="Output")


def one_of(names: Sequence[str], **option: Any) -> Any:
    """An option for one of some names; where it may be repeated, for several."""

    def check(given: Any) -> Any:
        for name in [given] if isinstance(given, str) else given or ():
            if name not in names:
                raise typer.BadParameter(f"{name!r} is not one of {', '.join(names)}")
        return given

    return of_method(metavar=f"[{'|'.join(names)}]", callback=check, **option)


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
MaybeModel = Annotated[
    str | None, typer.Option("--model", "-m", metavar="FILE", help="The saved model.", show_default=False)
]
Score = Annotated[
    list[str] | None,
    of_table(
        "--score",
        metavar="COLUMN",
        help="Column of scores, of whatever made them, instead of a model, or to compare it with; may be repeated.",
    ),
]
NewModel = Annotated[str, typer.Option("--model", "-m", metavar="FILE", help="Where to save the model.")]
Target = Annotated[str | None, of_table("--target", "-t", metavar="COLUMN", help="Column of the labels.")]
Positive = Annotated[
    str | None,
    of_table(
        metavar="LABEL",
        help="The positive label; all others are negative. Not needed for 0 and 1, -1 and 1, false and true.",
    ),
]
Id = Annotated[
    str | None, of_table("--id", metavar="COLUMN", help="Column that identifies a row; it is not learned from.")
]
Ignore = Annotated[list[str] | None, of_table(metavar="COLUMN", help="Column not to learn from; may be repeated.")]
Categorical = Annotated[
    list[str] | None,
    of_table(metavar="COLUMN", help="Column of numbers that are codes, not amounts; may be repeated."),
]
Time = Annotated[
    str | None,
    of_table(
        metavar="COLUMN",
        help="Column of the time of a row: dates, times or numbers; it is not learned from. It gives the "
        "order of the rows, and alerts a day.",
    ),
]
InOrder = Annotated[bool, of_table("--in-order", help="Rows are in the order of time, without a column for it.")]
Amount = Annotated[
    str | None,
    of_table(metavar="COLUMN", help="Column of an amount, such as money: what is found of it is measured too."),
]
Per = Annotated[
    str | None,
    of_threshold(
        metavar="PERIOD",
        help="Period to count alerts for: hour, day, week or month; or a number, in the unit of --time.",
    ),
]
Types = Annotated[
    list[str] | None,
    of_table(
        metavar="COLUMN=TYPE",
        help="What a column is, where that is not what is found: number, category or ignore; may be repeated.",
    ),
]
Missing = Annotated[
    list[str] | None,
    of_table(
        metavar="TEXT",
        help="What else stands for a missing value, such as -999, besides an empty field, NA, N/A, NaN, None, null, ? "
        "and -; may be repeated.",
    ),
]
Decimal = Annotated[
    str | None,
    of_table(metavar="CHARACTER", help="What stands before decimals in CSV; found where it is beyond doubt."),
]
Thousands = Annotated[
    str | None,
    of_table(metavar="CHARACTER", help="What stands between thousands in CSV; found where it is beyond doubt."),
]
Encoding = Annotated[
    str | None,
    of_table(metavar="NAME", help="Encoding of CSV, such as latin-1; by default UTF-8, or that of the model."),
]
Format = Annotated[
    str | None,
    of_table(metavar="FORMAT", help="csv, parquet, svmlight or numpy, if the name does not say it."),
]
Delimiter = Annotated[str | None, of_table(metavar="CHARACTER", help="Delimiter of CSV; by default found.")]
ZeroBased = Annotated[bool, of_table("--zero-based", help="Indices of svmlight start at 0.")]
Json = Annotated[bool, of_output("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, of_output("--quiet", "-q", help="No notes and no progress bar.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all random choices.")]
Jobs = Annotated[int, typer.Option(help="How many fits at the same time; -1: as many as there are cores.")]


def types_by_column(given: list[str] | None) -> dict[str, str]:
    """What --types says of each column."""
    types = {}
    for one in given or ():
        name, equals, kind = one.rpartition("=")
        if not equals or not name:
            raise typer.BadParameter(f"--types {one} names no type; write it as column=category")
        types[name] = kind
    return types
