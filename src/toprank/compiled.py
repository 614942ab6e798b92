"""How the loops of the package are compiled, and kept on disk for the next process where that is possible.

Numba keeps machine code beside the source, in the user's cache folder or in that of the environment variable
``NUMBA_CACHE_DIR``. Its own cache turns each trouble with these files into an error of the function that was called:
no folder to write to, a full disk, files cut short. None of them is a reason not to compute.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.sigutils import normalize_signature

from toprank.exceptions import CacheWarning

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
