"""Threads of the library: blocks of rows that are computed side by side, each with one thread of BLAS."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from numpy.typing import NDArray

_most_threads: ContextVar[int] = ContextVar("most_threads", default=sys.maxsize)
_helpers: ThreadPoolExecutor | None = None
_controller: Any = None


def in_parallel(function: Callable[[slice], NDArray[Any]], blocks: list[slice]) -> list[NDArray[Any]]:
    """Call a function on blocks, as many at a time as there are cores.

    This thread takes part. So a call from inside of another one ends even if no helper is left for it.
    """
    n_threads = min(n_cores(), _most_threads.get(), len(blocks))
    if n_threads <= 1:
        return list(map(function, blocks))
    found: list[Any] = [None] * len(blocks)
    numbers = iter(range(len(blocks)))

    def work() -> None:
        for number in numbers:
            found[number] = function(blocks[number])

    helpers = [_pool().submit(work) for _ in range(n_threads - 1)]
    try:
        work()
    finally:
        for _ in numbers:  # nothing more is begun if this thread was stopped
            pass
        begun = [helper for helper in helpers if not helper.cancel()]
        for helper in begun:
            helper.result()
    return found


def _pool() -> ThreadPoolExecutor:
    """The helpers, which are started when they are first needed and stay: a start takes as long as a small product."""
    global _helpers
    if _helpers is None:
        _helpers = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="toprank")
    return _helpers


def _forget_helpers() -> None:
    """A forked process has no threads but one."""
    global _helpers
    _helpers = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


@contextmanager
def at_most_threads(number: int) -> Iterator[None]:
    """Let products use no more than so many threads, as where several of them are computed at a time anyway."""
    before = _most_threads.set(number)
    try:
        yield
    finally:
        _most_threads.reset(before)


def n_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def on_all_cores(function: Callable[[slice], NDArray[Any]], tiles: list[slice]) -> list[NDArray[Any]]:
    """Call a function on tiles, several at a time, each with one thread of BLAS."""
    with one_blas_thread():
        return in_parallel(function, tiles)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread.

    More threads slow small products down, and the order of their sums would depend on their number; large products are
    split into blocks here.
    """
    global _controller  # looking the libraries up takes milliseconds, so it is done once
    if _controller is None:
        from threadpoolctl import ThreadpoolController

        _controller = ThreadpoolController()
    context: AbstractContextManager[Any] = _controller.limit(limits=1, user_api="blas")
    return context
