"""The command line: ``toprank --help``."""

from __future__ import annotations

import importlib.util
import sys


def main() -> None:
    """Run the command line; without its packages say how to get them."""
    absent = [name for name in ("typer", "rich", "polars") if importlib.util.find_spec(name) is None]
    if absent:
        sys.stderr.write(f"error: the command line needs {', '.join(absent)}; run: pip install 'toprank[cli]'\n")
        raise SystemExit(1)
    from toprank.cli.standard_streams import whole_streams

    with whole_streams():
        from toprank.cli.app import app

        app(prog_name="toprank")
