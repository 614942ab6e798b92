"""Models to files and back."""

from __future__ import annotations

import importlib.metadata
import os
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from toprank.exceptions import Message
from toprank.persistence.allowed import AllowedClasses
from toprank.persistence.container import content_sum, read_container, write_container
from toprank.persistence.decode import Decoder
from toprank.persistence.encode import Encoder
from toprank.persistence.errors import ModelFileError, ModelVersionWarning


def save(model: Any, path: str | os.PathLike[str], *, trusted: Iterable[type] = ()) -> None:
    """Save a model to one file, without pickle.

    The file holds arrays and JSON with a checksum, in the format of docs/reference/model-format.md. It takes all
    estimators of toprank, and pipelines of them with common scikit-learn preprocessing. It is written atomically: a
    crash leaves the old file or none, and what a killed process left beside it is removed by the next save. What only a
    warm start needs is left out unless the model has ``warm_start=True``.

    Parameters
    ----------
    model : estimator
        A model of toprank, or a scikit-learn pipeline around one; fitted or not.
    path : path
        The file to write; an existing one is replaced and keeps its permissions.
    trusted : iterable of classes, optional
        Further classes that the model may contain, such as a transformer of your own. Their attributes must be plain
        data; pass the same classes to `load`.

    Raises
    ------
    ModelFileError
        If some attribute cannot be saved, for instance a function; the message names it and what helps.
    OSError
        If the file cannot be written.

    See Also
    --------
    load : The way back. to_onnx : Export for other languages and runtimes.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank import TopPush, load, save
    >>> from toprank.datasets import load_bundled
    >>> data = load_bundled("breast_cancer")
    >>> model = make_pipeline(StandardScaler(), TopPush()).fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.toprank")
    ...     save(model, path)
    ...     again = load(path)
    >>> bool((again.decision_function(data.X) == model.decision_function(data.X)).all())
    True
    """
    if isinstance(model, type) or not hasattr(model, "get_params"):
        raise ModelFileError(f"save takes an estimator, got {model!r:.80}; for arrays use numpy.savez")
    write_tree(model, path, kind="model", name=type(model).__name__, trusted=trusted, about=_about)


def _about(model: Any) -> dict[str, Any] | None:
    """What a model says of itself; nothing if it cannot, as one of a class of the user's own, which is saved anyway."""
    from toprank.inspection import about

    try:
        return about(model)
    except Exception:
        return None


def load(path: str | os.PathLike[str], *, trusted: Iterable[type] = ()) -> Any:
    """Load a model that `save` wrote.

    No code of the file is executed, whatever it contains: only classes of a fixed list are made, and each object is
    checked to have the state that its class could have: types, shapes, ranges. The checksum finds damage; it is no
    signature, so take models, as any other data, from people you trust.

    Parameters
    ----------
    path : path
        The file.
    trusted : iterable of classes, optional
        Classes besides those of the list, as given to `save`.

    Returns
    -------
    estimator
        The model, with the same bits in all arrays.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, of a newer format or no model at all.
    OSError
        If there is no such file, or it cannot be read.

    Warns
    -----
    ModelVersionWarning
        If the file holds scikit-learn objects written by another version of scikit-learn.

    Examples
    --------
    >>> import os, tempfile
    >>> from toprank import TopPush, load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.toprank")
    ...     save(TopPush(alpha=0.01), path)
    ...     load(path)
    TopPush(alpha=0.01)
    """
    return read_tree(path, kind="model", trusted=trusted)


def write_tree(
    item: Any,
    path: str | os.PathLike[str],
    *,
    kind: str,
    name: str,
    trusted: Iterable[type] = (),
    about: Callable[[Any], dict[str, Any] | None] = lambda item: None,
) -> None:
    """Write any item made of plain data and allowed classes; `kind` is what the reader has to ask for.

    `about` makes what the file says of the item to those who only look.
    """
    encoder = Encoder(AllowedClasses(trusted))
    try:
        root = encoder.value(item, name)
    except RecursionError:
        raise ModelFileError(f"{name} is nested too deeply for a file; save its parts") from None
    versions = {package: _version_of(package) for package in ("toprank", "numpy", "scikit-learn")}
    header = {"kind": kind, "versions": versions, "classes": sorted(encoder.classes), "root": root}
    says = about(item)
    if says is not None:
        header["about"] = says
    write_container(path, {**header, "nodes": encoder.nodes}, encoder.arrays)


def read_tree(path: str | os.PathLike[str], *, kind: str, trusted: Iterable[type] = ()) -> Any:
    """Read what `write_tree` wrote."""
    allowed = AllowedClasses(trusted)
    try:
        container = read_container(path)
        header = container.header if isinstance(container.header, dict) else {}
        if header.get("kind") != kind:
            raise ModelFileError(_other_kind(header.get("kind"), kind))
        decoder = Decoder(container, allowed)
        decoder.make_all(header.get("nodes"))
        item = decoder.value(header.get("root"))
    except ModelFileError as error:
        raise ModelFileError(
            Message("{path!r} cannot be loaded: {error}", path=os.fspath(path), error=error)
        ) from error
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError, RecursionError) as error:
        # A well-made file cannot get here; one made up to fit its checksum can, in many ways.
        raise ModelFileError(f"{os.fspath(path)!r} cannot be loaded: its content makes no sense ({error})") from error
    warn_of_versions(header, os.fspath(path))
    return item


def fingerprint(item: Any, trusted: Iterable[type] = ()) -> str:
    """A sum over all that a file of the item would hold, to tell it from others."""
    encoder = Encoder(AllowedClasses(trusted))
    root = encoder.value(item, type(item).__name__)
    return content_sum({"root": root, "nodes": encoder.nodes}, encoder.arrays)


def _other_kind(found: Any, wanted: str) -> str:
    if found == "checkpoint":
        return Message(
            "it is a checkpoint, not a model; give it to toprank.stream(checkpoint=...) to go on",
            elsewhere="it is a checkpoint, not a model; go on with it by toprank stream --checkpoint",
        )
    if found == "model":
        remedy = Message("read it with toprank.load", elsewhere="look at it by toprank info")
        return Message("it is a model, not a {wanted}; {remedy}", wanted=wanted, remedy=remedy)
    return f"it says that it is a {str(found)[:40]!r}, not a {wanted}"


@cache
def _version_of(package: str) -> str:
    """The version that is installed; to look it up takes longer than to write a small model."""
    return importlib.metadata.version(package)


def warn_of_versions(header: dict[str, Any], path: str) -> None:
    """Warn of scikit-learn objects that another version has written."""
    classes, versions = header.get("classes"), header.get("versions")
    of_sklearn = [name for name in classes if str(name).startswith("sklearn.")] if isinstance(classes, list) else []
    written = versions.get("scikit-learn") if isinstance(versions, dict) else None
    installed = _version_of("scikit-learn")
    if of_sklearn and written != installed:
        warnings.warn(
            f"{path!r} holds {', '.join(map(str, of_sklearn))} of scikit-learn {written}, and {installed} is "
            "installed; compare some scores with those of the old version, or fit and save the model again",
            ModelVersionWarning,
            stacklevel=3,
        )
