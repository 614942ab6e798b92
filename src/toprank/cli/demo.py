"""``toprank demo``: what 200 alerts a day find, on payments that come with the package."""

from __future__ import annotations

from typing import Annotated

import typer

from toprank.cli.output import guarded


@guarded
def demo(
    folder: Annotated[
        str, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write the files.")
    ] = "toprank-demo",
) -> None:
    """Show what 200 alerts a day find among card payments that come with the package; it takes some seconds.

    It writes payments-train.csv and payments-test.csv, with which the other commands can be tried, and a figure.

    [bold]Examples[/bold]

    toprank demo

    toprank demo --output somewhere
    """
    from toprank.demo import main

    code = main([folder])
    if code:
        raise typer.Exit(code)
