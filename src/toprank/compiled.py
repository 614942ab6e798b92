"""How the loops of the package are compiled, and kept on disk for the next process where that is possible.

Numba keeps machine code beside the source, in the user's cache folder or in that of the environment variable
``NUMBA_CACHE_DIR``. Its own cache turns each trouble with these files into an error of the function that was called:
no folder to write to, a full disk, files cut short. None of them is a reason not to compute.
"""

from __future__ import annotations

import gc
import pickle
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

from numba import njit, types, version_info
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.sigutils import normalize_signature
from numba.core.types import BaseFunction
from numba.extending import register_jitable

from toprank.exceptions import CacheWarning
from toprank.log import announce

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
# Whether this is the numba whose compiler is known well enough to change its passes; others compile as usual, slower.
_KNOWN = tuple(version_info[:2]) == (0, 68)

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(*, allocates: bool = False, **options: Any) -> Callable[[Function], Function]:
    """Compile a function on its first call, with options of :func:`numba.njit`, and cache the machine code.

    Arrays are passed without counting who refers to them, unless the function makes new ones (`allocates`), which takes
    the compiler longer: room for results comes from the caller. A division by zero is what it is in NumPy.
    """

    def decorate(function: Function) -> Any:
        dispatcher = njit(**_options("LoopCompiler", allocates, options))(function)
        try:
            dispatcher._cache = _Cache(function)
        except (RuntimeError, OSError) as error:  # "no locator available": no folder can be written to
            _warn_once(error)
        return dispatcher

    return decorate


def part(*, allocates: bool = False, **options: Any) -> Callable[[Function], Function]:
    """Compile a function as a part of the loops that call it; called from Python it runs as it is written.

    It costs less to compile than one that Python can call: no arguments are unpacked, no file is kept.
    """
    decorate: Callable[[Function], Function] = register_jitable(**_options("PartCompiler", allocates, options))
    return decorate


def _options(passes: str, allocates: bool, others: dict[str, Any]) -> dict[str, Any]:
    options = {"no_cfunc_wrapper": True, "_nrt": allocates, "error_model": "numpy"} | others
    if _KNOWN:
        from toprank import compiler_passes

        options["pipeline_class"] = getattr(compiler_passes, passes)
    return options


class _Watch(event.Listener):
    """Notices when a loop of the package is compiled; functions compiled on the way for it are part of that."""

    depth = 0

    def on_start(self, happened: Any) -> None:
        """Begin with the outermost function."""
        self.depth += 1
        if self.depth == 1 and _is_ours(happened):
            self.begin()

    def on_end(self, happened: Any) -> None:
        """End with the outermost function."""
        self.depth -= 1
        if self.depth == 0:
            self.end()

    def begin(self) -> None:
        """A loop of the package is compiled."""

    def end(self) -> None:
        """It has been, or one of others."""


class Patience(_Watch):
    """Says that loops are being compiled, once in a process, where that has taken longer than a second."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.left, self.start = seconds, 0.0
        self.timer: threading.Timer | None = None

    def begin(self) -> None:
        """Start to wait."""
        if self.left > 0:
            self.start = time.monotonic()
            self.timer = threading.Timer(self.left, copy_context().run, (announce, _COMPILING))
            self.timer.daemon = True
            self.timer.start()

    def end(self) -> None:
        """Count the time that it took."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer, self.left = None, self.left - (time.monotonic() - self.start)


class NoCollection(_Watch):
    """Holds the garbage collector while loops are compiled: it goes through all that the compiler keeps, for little."""

    held = False

    def begin(self) -> None:
        """Hold it, unless the program does so already."""
        self.held = gc.isenabled()
        gc.disable()

    def end(self) -> None:
        """Let it go on."""
        if self.held:
            self.held = False
            gc.enable()


class ResolvedOnce(_Watch):
    """Remembers what numba found for operators and built-ins of numbers and arrays while loops are compiled.

    It tries some twenty declarations for each `a + b` of a loop, anew each time, a quarter of all that compiling takes.
    The answer depends on the operator and on the types alone. The compiler's lock is held meanwhile, so that no other
    thread compiles.
    """

    resolve: Any = None

    def begin(self) -> None:
        """Remember from here on."""
        known: dict[Any, Any] = {}
        resolve = self.resolve = _RESOLVER.get_call_type

        def resolve_once(function: Any, context: Any, args: Any, kws: Any) -> Any:
            keys = getattr(function, "_impl_keys", None)
            if kws or keys is None or not _is_built_in(function, args):
                return resolve(function, context, args, kws)
            if (function, args) not in known:
                signature = resolve(function, context, args, kws)
                known[function, args] = signature, keys[signature.args]
            signature, keys[signature.args] = known[function, args]
            return signature

        _RESOLVER.get_call_type = resolve_once

    def end(self) -> None:
        """Forget."""
        if self.resolve is not None:
            _RESOLVER.get_call_type, self.resolve = self.resolve, None


class Count(_Watch):
    """Counts the loops of the package that are compiled."""

    loops = 0

    def begin(self) -> None:
        """One more."""
        self.loops += 1


@contextmanager
def counted() -> Iterator[Count]:
    """Count the loops that are compiled, and not found on disk, as long as the context lasts."""
    count = Count()
    with event.install_listener("numba:compile", count):
        yield count


def _is_built_in(function: Any, args: Any) -> bool:
    module = getattr(function.typing_key, "__module__", "")
    return module in ("_operator", "builtins") and all(isinstance(a, _PLAIN) for a in args)


_RESOLVER: Any = BaseFunction
_PLAIN = (types.Number, types.Boolean, types.Array)
_COMPILING = "compiling loops for this machine; the next process finds them ready"


def _is_ours(happened: Any) -> bool:
    module: str | None = happened.data["dispatcher"].py_func.__module__  # none where Numba wrote the function
    return module is not None and module.partition(".")[0] == __package__


event.register("numba:compile", Patience())
event.register("numba:compile", NoCollection())
event.register("numba:compile", ResolvedOnce())


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
