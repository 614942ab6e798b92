"""What every fit starts and ends with, whatever is fitted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def anew_or_unchanged(estimator: Any) -> Iterator[None]:
    """Fit an estimator without anything of earlier fits; leave it as it was if that fails or is interrupted.

    What a fit leaves are the attributes that end with an underscore, and the kernel that belongs to them.
    """
    before = dict(vars(estimator))
    for name in before:
        if name.endswith("_") or name == "_kernel":
            delattr(estimator, name)
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
