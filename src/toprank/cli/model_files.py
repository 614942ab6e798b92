"""Models of the command line in files, and the rows that they were tested with."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.cli.output import Output

_BLOCK = 1 << 20


def save_model(model: Any, path: str) -> None:
    """Save a `TableModel`, atomically."""
    from toprank.persistence import save

    save(model, path)


def load_any(path: str, output: Output) -> Any:
    """Load a model; warnings about versions become notes."""
    from toprank.persistence import load

    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no model {path!r}; make one by toprank fit, or check the path")
    with output.noted_warnings():
        return load(path)


def load_model(path: str, output: Output) -> Any:
    """Load a model that knows its columns."""
    from toprank.files import TableModel

    model = load_any(path, output)
    if not isinstance(model, TableModel) or not hasattr(model, "estimator_"):
        raise ValueError(
            f"{path!r} holds a {type(model).__name__} that does not say which columns it takes; use it in Python, or "
            "make a model by toprank fit"
        )
    return model


def check_writable(path: str, option: str, *inputs: str | None) -> None:
    """Refuse a path that cannot be written, or is one of the inputs, before hours of work are lost on it.

    Parameters
    ----------
    path : str
        The file to write.
    option : str
        The option that names it, for errors.
    *inputs : str or None
        Files that the command reads; None for one that is not given.
    """
    from toprank.persistence.atomic import same_file

    if not path:
        raise ValueError(f"{option} is empty; name a file")
    if os.path.isdir(path):
        raise ValueError(f"{option} {path!r} is a folder; name a file in it, such as {os.path.join(path, 'name')!r}")
    target = os.path.realpath(path)
    if not os.path.isdir(os.path.dirname(target)):
        raise ValueError(
            f"{option} {path!r} is in a folder that does not exist; make it by mkdir, or name another path"
        )
    if not os.access(os.path.dirname(target), os.W_OK):
        raise ValueError(f"{option} {path!r} is in a folder that you may not write to; name another path")
    if _exists(target, option, path) and not os.path.isfile(target):
        raise ValueError(f"{option} {path!r} is not a plain file, so it cannot be replaced; name another path")
    for other in inputs:
        if other is not None and same_file(target, other):
            raise ValueError(f"{option} {path!r} is the file that is read, and would replace it; name another path")


def _exists(target: str, option: str, path: str) -> bool:
    """Whether there is such a file; an error if there cannot be one, as its name is too long."""
    try:
        os.stat(target)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ValueError(f"{option} {path!r} cannot be written ({error.strerror}); name another path") from None
    return True


def sum_of(path: str) -> str | None:
    """The SHA-256 sum of a file; None of a pipe, which cannot be read again."""
    from toprank.files.content import is_pipe

    if is_pipe(path):
        return None
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def sum_of_labels(y: NDArray[np.int64]) -> str:
    """The SHA-256 sum of labels 0 and 1, to tell whether others are asked for than those of a fit."""
    return hashlib.sha256(y.astype(np.uint8).tobytes()).hexdigest()


def held_out_rows(y: NDArray[np.int64], share: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to learn from and rows to test with, the same for the same labels, share and seed.

    Both classes are in both parts; a class of one row stays whole in the first.
    """
    random = np.random.default_rng(seed)
    held = []
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        count = min(round(share * len(rows)), len(rows) - 1)
        held.append(random.permutation(rows)[: max(count, 0)])
    if any(len(rows) == 0 for rows in held):
        return np.arange(len(y)), np.zeros(0, np.intp)
    test = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(y)), test), test
