"""The optional package polars, where it is installed and works."""

from __future__ import annotations

import os
import threading
from typing import Any

_PATIENCE = 20.0
_working_in: int | None = None  # the process in which its threads have answered


def polars(needed: str) -> Any:
    """The package; errors say who needs it, as in "tables need".

    It is refused if its threads stayed behind in the process that this one was forked from: work would never end.
    """
    try:
        import polars as package
    except ImportError as error:
        raise ImportError(f"{needed} polars; install it by pip install 'toprank[cli]'") from error
    _require_threads(package)
    return package


def _require_threads(package: Any) -> None:
    """Give polars a task of some milliseconds, once a process, and refuse it if it does not come back."""
    global _working_in
    if _working_in == os.getpid():
        return
    task = threading.Thread(target=package.read_csv, args=(b"a\n1\n",), daemon=True)
    task.start()
    task.join(_PATIENCE)
    if task.is_alive():
        raise RuntimeError(
            "polars does not answer: it was used before this process was forked, and its threads stayed behind; start "
            "processes by spawn, as by multiprocessing.get_context('spawn'), or use CSV or svmlight in toprank.stream"
        )
    _working_in = os.getpid()
