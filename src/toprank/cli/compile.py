"""``toprank compile``: the loops compiled ahead of their first use."""

from __future__ import annotations

from typing import Annotated

import typer

from toprank.cli.output import guarded


@guarded
def compile(
    only: Annotated[
        str, typer.Option(metavar="TEXT", help="Only what the methods need whose name in the list begins so.")
    ] = "",
) -> None:
    """Compile all loops once and keep them on disk, so that no first fit has to; it takes a minute or two.

    For the image of a container, or a machine where nobody should wait. The files are beside the package, in the cache
    folder of the user, or in that of the environment variable NUMBA_CACHE_DIR, and serve this processor, this
    installation and this version of numba.

    [bold]Examples[/bold]

    toprank compile

    toprank compile --only CBR
    """
    from toprank.compilation import main

    main(["--only", only])
