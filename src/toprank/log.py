"""Where progress goes that `verbose` asks for."""

from __future__ import annotations

import logging


def logger() -> logging.Logger:
    """The logger "toprank"; it writes to the standard error stream unless the application has set up logging."""
    logger = logging.getLogger("toprank")
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)
    return logger
