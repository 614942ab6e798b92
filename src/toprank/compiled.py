"""How the loops of the package are compiled, and kept on disk for the next process where that is possible.

Numba keeps machine code beside the source, in the user's cache folder or in that of the environment variable
``NUMBA_CACHE_DIR``. Its own cache turns each trouble with these files into an error of the function that was called:
no folder to write to, a full disk, files cut short. None of them is a reason not to compute.
"""

from __future__ import annotations

import pickle
import threading
import time
import warnings
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.sigutils import normalize_signature

from toprank.exceptions import CacheWarning
from toprank.log import say

# What reading a damaged file raises, see the documentation of pickle.
_DAMAGE = (
    pickle.UnpicklingError,
    EOFError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    OverflowError,
    TypeError,
    ValueError,
)


Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function on its first call, with options of :func:`numba.njit`, and cache the machine code."""

    def decorate(function: Function) -> Any:
        dispatcher = njit(**options)(function)
        try:
            dispatcher._cache = _Cache(function)
        except (RuntimeError, OSError) as error:  # "no locator available": no folder can be written to
            _warn_once(error)
        return dispatcher

    return decorate


class Patience(event.Listener):
    """Says that loops are being compiled, once in a process, where that has taken longer than a second."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.left, self.depth, self.start = seconds, 0, 0.0
        self.timer: threading.Timer | None = None

    def on_start(self, happened: Any) -> None:
        """Start to wait; functions that are compiled on the way for another one are part of it."""
        self.depth += 1
        if self.depth == 1 and self.left > 0 and _is_ours(happened):
            self.start = time.monotonic()
            self.timer = threading.Timer(self.left, copy_context().run, (say, _COMPILING))
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, happened: Any) -> None:
        """Count the time that it took."""
        self.depth -= 1
        if self.depth == 0 and self.timer is not None:
            self.timer.cancel()
            self.timer, self.left = None, self.left - (time.monotonic() - self.start)


_COMPILING = "compiling loops for this machine; the next process finds them ready"


def _is_ours(happened: Any) -> bool:
    module: str = happened.data["dispatcher"].py_func.__module__
    return module.partition(".")[0] == __package__


event.register("numba:compile", Patience())


class _Cache(FunctionCache):
    """Numba's cache of one function, which does without the disk where it fails and replaces what is damaged."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            loaded = super().load_overload(sig, target_context)
        except OSError as error:
            return self._give_up(error)
        except _DAMAGE:
            return self._start_anew()
        # processes that wrote at the same time may leave the code of other types under this name
        matches = loaded is None or tuple(loaded.signature.args) == tuple(normalize_signature(sig)[0])
        return loaded if matches else None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self._give_up(error)

    def _start_anew(self) -> None:
        try:
            self.flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.disable()
        _warn_once(error)


_warned = False


def _warn_once(error: Exception) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled loops are not kept on disk, so that every process compiles them again ({error}); set the "
            "environment variable NUMBA_CACHE_DIR to a folder that has room and can be written to",
            CacheWarning,
            stacklevel=3,
        )
