"""Progress of long work: a bar where rich is installed, else lines in the log."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")
_LOGGER = logging.getLogger("toprank")


def track(items: Iterable[_Item], total: int, title: str, verbose: int) -> Iterator[_Item]:
    """The items, and with ``verbose >= 1`` a bar on standard error, or a line in the log for every tenth of them."""
    if verbose < 1:
        yield from items
        return
    try:
        progress, console = importlib.import_module("rich.progress"), importlib.import_module("rich.console")
    except ImportError:
        yield from _logged(items, total, title)
        return
    yield from progress.track(items, total=total, description=title, console=console.Console(stderr=True))


def _logged(items: Iterable[_Item], total: int, title: str) -> Iterator[_Item]:
    for done, item in enumerate(items, start=1):
        yield item
        if done * 10 // total > (done - 1) * 10 // total:
            _LOGGER.info("%s: %d of %d", title, done, total)
