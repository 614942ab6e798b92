"""Where progress goes: to the log if `verbose` asks for it, and to whoever listens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_verbose: ContextVar[bool] = ContextVar("verbose", default=False)
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
_listener: ContextVar[Callable[[str], Any] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Callable[[str], Any]) -> Iterator[None]:
    """Let a function hear, in a few words each time, how far solvers are."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def verbose(wanted: Any) -> Iterator[None]:
    """Let what is said by `say` go to the log, if that is wanted, as long as the context lasts."""
    token = _verbose.set(_verbose.get() or bool(wanted))
    try:
        yield
    finally:
        _verbose.reset(token)


@contextmanager
def quiet(wanted: bool) -> Iterator[None]:
    """Keep what is said by `announce` out of the log, if that is wanted, as long as the context lasts."""
    token = _quiet.set(_quiet.get() or wanted)
    try:
        yield
    finally:
        _quiet.reset(token)


def announce(text: str) -> None:
    """Say something that nobody asked for but should see: to whoever listens, and to the log as a warning."""
    tell(text)
    if not _quiet.get():
        logging.getLogger("toprank").warning(text)


def say(text: str) -> None:
    """Say something to whoever listens, and to the log if `verbose` asks for it."""
    tell(text)
    if _verbose.get():
        logger().info(text)


def tell(text: str) -> None:
    """Say something to whoever listens."""
    if (listener := _listener.get()) is not None:
        listener(text)


def logger() -> logging.Logger:
    """The logger "toprank"; it writes to the standard error stream unless the application has set up logging."""
    logger = logging.getLogger("toprank")
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)
    return logger
