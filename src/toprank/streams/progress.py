"""How far a stream is, for the one who waits."""

from __future__ import annotations

import importlib.util
import math
import time

from toprank.log import logger

_SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Shows positions in a file to nobody; use it as a context."""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update(self, position: int, n_rows: int, auc: float) -> None:
        """Show a position, the number of rows, and the latest area under the curve, which may be nan."""


def progress(verbose: int, size: int | None, start: int) -> Progress:
    """A bar where rich is installed, otherwise lines in the log; nothing if not asked for."""
    if not verbose:
        return Progress()
    return _Bar(size, start) if importlib.util.find_spec("rich") is not None else _Log(size)


class _Log(Progress):
    def __init__(self, size: int | None) -> None:
        self.size = size
        self.last = time.monotonic()

    def update(self, position: int, n_rows: int, auc: float) -> None:
        if time.monotonic() - self.last >= _SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            share = "" if self.size is None else f", {100 * position / max(self.size, 1):.0f} % of the file"
            logger().info("%d rows%s, AUC %.4f", n_rows, share, auc)


class _Bar(Progress):
    def __init__(self, size: int | None, start: int) -> None:
        import rich.progress
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

        about = TextColumn("{task.description}")
        columns = (about, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self.bar = rich.progress.Progress(*columns, console=Console(stderr=True))
        self.task = self.bar.add_task("0 rows", total=size, completed=start)

    def __enter__(self) -> Progress:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def update(self, position: int, n_rows: int, auc: float) -> None:
        shown = "" if math.isnan(auc) else f", AUC {auc:.4f}"
        self.bar.update(self.task, completed=position, description=f"{n_rows:,} rows{shown}")
