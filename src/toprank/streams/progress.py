"""How far a stream is, for the one who waits."""

from __future__ import annotations

import importlib.util
import math
import time
from typing import Any, Protocol

from toprank.log import logger

_SECONDS_BETWEEN_LINES = 10.0


class Progress(Protocol):
    """Shows positions in a file; use it as a context."""

    def __enter__(self) -> Progress: ...

    def __exit__(self, *error: object) -> None: ...

    def update(self, position: int, n_rows: int, auc: float) -> None:
        """Show a position, the number of rows, and the latest area under the curve, which may be nan."""


def progress(verbose: int, size: int | None, start: int) -> Progress:
    """A bar where rich is installed, otherwise lines in the log; nothing if not asked for."""
    if not verbose:
        return _Silent()
    if importlib.util.find_spec("rich") is not None:
        return _Bar(size, start)
    return _Log(size)


class _Silent:
    def __enter__(self) -> _Silent:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update(self, position: int, n_rows: int, auc: float) -> None:
        pass


class _Log(_Silent):
    def __init__(self, size: int | None) -> None:
        self.size = size
        self.last = time.monotonic()

    def update(self, position: int, n_rows: int, auc: float) -> None:
        if time.monotonic() - self.last >= _SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            share = "" if self.size is None else f", {100 * position / max(self.size, 1):.0f} % of the file"
            logger().info("%d rows%s, AUC %.4f", n_rows, share, auc)


class _Bar(_Silent):
    def __init__(self, size: int | None, start: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns: list[Any] = [
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
        ]
        self.bar = Progress(*columns, console=Console(stderr=True))
        self.task = self.bar.add_task("0 rows", total=size, completed=start)

    def __enter__(self) -> _Bar:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def update(self, position: int, n_rows: int, auc: float) -> None:
        shown = "" if math.isnan(auc) else f", AUC {auc:.4f}"
        self.bar.update(self.task, completed=position, description=f"{n_rows:,} rows{shown}")
