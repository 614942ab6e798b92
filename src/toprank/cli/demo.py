"""``toprank demo``: what the methods do, on data that come with the package."""

from __future__ import annotations

from typing import Annotated

import typer

from toprank.cli.output import guarded


@guarded
def demo(
    splits: Annotated[int, typer.Option(min=2, help="Number of random splits.")] = 10,
    figure: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write the figure, as PNG.")
    ] = "toprank-demo.png",
) -> None:
    """Compare some methods on two small data sets that come with the package; it takes some seconds.

    [bold]Examples[/bold]

    toprank demo

    toprank demo --splits 3 --output demo.png
    """
    from toprank.cli.model_files import check_writable
    from toprank.demo import main

    check_writable(figure, "--output")
    code = main(["--splits", str(splits), "--out", figure])
    if code:
        raise typer.Exit(code)
