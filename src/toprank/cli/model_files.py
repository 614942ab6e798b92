"""Models of the command line in files."""

from __future__ import annotations

import os
from typing import Any

from toprank.cli.output import Output


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


def require_model_or_scores(model: str | None, scores: list[str] | None) -> None:
    """Check that something is to be judged."""
    if model is None and not scores:
        raise ValueError("say what to judge: a model by --model, or columns of scores in the file by --score")


def check_writable(path: str, option: str, *inputs: str | None) -> None:
    """Refuse a path that cannot be written, or is one of the inputs, before hours of work are lost on it."""
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
