"""Real data: the sets of a data folder, raw or as binary tasks."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.datasets._folder import DatasetError, data_folder, read_manifest, unknown_name, verified_bytes
from toprank.datasets._labels import binarize
from toprank.datasets._tasks import TASKS

if TYPE_CHECKING:
    from sklearn.utils import Bunch

DataHome = str | os.PathLike[str] | None

_COMPANIONS = {"y.npy": "y", "classes.npy": "target_names", "features.npy": "feature_names", "split.npy": "split"}


def list_datasets(*, data_home: DataHome = None) -> list[str]:
    """Names of the sets that the manifest of the data folder lists, sorted.

    Parameters
    ----------
    data_home : path, optional
        The data folder. By default the environment variable ``TOPRANK_DATA`` names it.

    Returns
    -------
    list of str
        Names for :func:`load`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from toprank.datasets import list_datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     manifest = pathlib.Path(folder, "MANIFEST.json")
    ...     _ = manifest.write_text('{"datasets": [{"name": "toy", "files": [], "sha256": {}}]}')
    ...     list_datasets(data_home=folder)
    ['toy']
    """
    return sorted(read_manifest(data_folder(data_home)))


def load(name: str, *, data_home: DataHome = None) -> Bunch:
    """Read a set from the data folder, after checking the SHA-256 sum of each of its files.

    Values, labels and the order of the rows are those of the files: nothing is scaled, shuffled or
    recoded. Use :func:`load_task` for a set as a binary task, or :func:`binarize` on ``y``.

    Parameters
    ----------
    name : str
        A name out of :func:`list_datasets`.
    data_home : path, optional
        The data folder. By default the environment variable ``TOPRANK_DATA`` names it.

    Returns
    -------
    sklearn.utils.Bunch
        With the fields

        - ``X``: array, or CSR matrix for a sparse set, of shape (n_samples, n_features);
        - ``y``: labels or targets (a 0/1 matrix for a set with several labels per row);
        - ``feature_names``: array of strings, or None if unknown;
        - ``target_names``: names of the classes if ``y`` holds indices into them, else None;
        - ``n_train``: the first ``n_train`` rows are the official training part; None if there is
          no official split;
        - ``extras``: dict of the remaining arrays, such as ``timestamp``, ``group`` or ``split``;
        - ``name`` and ``DESCR``: the name, and a description with origin and licence.

    Raises
    ------
    DatasetError
        If the folder, its manifest or a file is missing, unreadable, truncated or altered.
    ValueError
        If the manifest does not list `name`.

    Examples
    --------
    A data folder is a manifest and files in NumPy's formats:

    >>> import hashlib, json, pathlib, tempfile
    >>> import numpy as np
    >>> from toprank.datasets import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "toy.npz")
    ...     np.savez(path, X=np.eye(3), y=np.array(["a", "b", "b"]))
    ...     checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    ...     entry = {"name": "toy", "files": [path.name], "sha256": {path.name: checksum}}
    ...     manifest = pathlib.Path(folder, "MANIFEST.json")
    ...     _ = manifest.write_text(json.dumps({"datasets": [entry]}))
    ...     toy = load("toy", data_home=folder)
    >>> toy.X.shape, toy.y.tolist(), toy.n_train
    ((3, 3), ['a', 'b', 'b'], None)
    """
    from sklearn.utils import Bunch

    folder = data_folder(data_home)
    manifest = read_manifest(folder)
    if name not in manifest:
        raise unknown_name(name, manifest, f"data set in {str(folder)!r} with the name")
    entry = manifest[name]
    arrays = _read_arrays(folder, entry)
    _check_shapes(arrays, entry)
    target_names = arrays.pop("target_names", None)
    if target_names is None and "class_names" in entry:
        target_names = np.asarray(entry["class_names"])
    return Bunch(
        X=arrays.pop("X"),
        y=arrays.pop("y"),
        feature_names=arrays.pop("feature_names", None),
        target_names=target_names,
        n_train=entry.get("n_train"),
        extras=arrays,
        name=name,
        DESCR=_describe(entry),
    )


def load_task(name: str, *, data_home: DataHome = None) -> Bunch:
    """Read a set as the binary task that the literature makes of it: ``y`` is 0 or 1.

    The tasks are in :data:`TASKS`: those of the papers' tables where a table names the positive class, else the
    orientation of the set's two classes or the usual rare class. They are fixed conventions, made for comparison with
    published numbers; for any other task use :func:`load` and :func:`binarize`.

    Parameters
    ----------
    name : str
        A name that is both in :data:`TASKS` and in the data folder.
    data_home : path, optional
        The data folder. By default the environment variable ``TOPRANK_DATA`` names it.

    Returns
    -------
    sklearn.utils.Bunch
        As from :func:`load`, but ``y`` is an int64 array of 0 and 1, ``target_names`` is None, and
        ``DESCR`` also says what is positive and who chose it.

    Examples
    --------
    >>> from toprank.datasets import TASKS
    >>> TASKS["winequality-red"].meaning
    'quality 7 or 8'
    >>> from toprank.datasets import load_task
    >>> load_task("glass")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: There is no binary task for 'glass'...
    """
    if name not in TASKS:
        raise ValueError(
            f"There is no binary task for {name!r}. Use load({name!r}) and binarize its y; tasks "
            f"exist for {sorted(TASKS)}."
        )
    task = TASKS[name]
    data = load(name, data_home=data_home)
    by_name = data.target_names is not None and (callable(task.positive) or isinstance(task.positive, str))
    labels = data.target_names[data.y] if by_name else data.y
    data.y = binarize(labels, positive=task.positive)
    data.target_names = None
    data.DESCR += f"Binary task: positive = {task.meaning}; {int(data.y.sum())} positives\n"
    data.DESCR += f"Task from: {task.source}\n"
    return data


def _read_arrays(folder: Path, entry: dict[str, Any]) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for file in entry["files"]:
        content = verified_bytes(folder, file, entry["sha256"][file])
        try:
            arrays |= _parse(file.removeprefix(entry["name"] + "."), io.BytesIO(content))
        except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise DatasetError(
                f"{str(folder / file)!r} has the right checksum but cannot be read as data of "
                f"{entry['name']!r}: {error}. The folder or its manifest was made wrongly."
            ) from error
    return arrays


def _parse(role: str, content: io.BytesIO) -> dict[str, Any]:
    """The arrays of one file; its role is its name without the name of the set."""
    if role == "csr.npz":
        from scipy.sparse import load_npz

        return {"X": load_npz(content).tocsr()}
    if role in ("npz", "vocab.npz"):
        with np.load(content, allow_pickle=False) as archive:
            if role == "npz":
                return dict(archive)
            return {"feature_names": np.char.decode(archive["vocab"], "utf-8")}
    if role in _COMPANIONS:
        return {_COMPANIONS[role]: np.load(content, allow_pickle=False)}
    raise ValueError(f"files of the kind {role!r} are unknown")


def _check_shapes(arrays: dict[str, Any], entry: dict[str, Any]) -> None:
    missing = sorted({"X", "y"} - arrays.keys())
    if missing:
        raise DatasetError(f"The files of {entry['name']!r} hold no {' and no '.join(missing)}.")
    X, y = arrays["X"].shape, arrays["y"].shape
    n_samples, n_features = entry.get("n_samples"), entry.get("n_features")
    fits = len(X) == 2 and y[:1] == X[:1]
    if not fits or n_samples not in (None, X[0]) or n_features not in (None, X[1]):
        raise DatasetError(
            f"The manifest says that {entry['name']!r} is {n_samples} x {n_features}, but its "
            f"files hold X of shape {X} and y of shape {y}."
        )


def _describe(entry: dict[str, Any]) -> str:
    """A text made of what the manifest says about a set, one fact a line."""
    counts = entry.get("class_counts") or entry.get("rating_counts")
    facts = {
        "Kind": entry.get("task"),
        "Rows": entry.get("n_samples"),
        "Features": entry.get("n_features"),
        "Official training rows": entry.get("n_train"),
        "Class counts": counts and ", ".join(f"{label}: {n}" for label, n in counts.items()),
        "Note": entry.get("class_counts_note"),
        "Target range": entry.get("target_range"),
        "Positive class": entry.get("positive_class"),
        "Incomplete": entry.get("partial"),
        "Origin": entry.get("origin"),
        "Licence": entry.get("licence"),
        "Checked": entry.get("check"),
    }
    lines = [f"{title}: {fact}" for title, fact in facts.items() if fact is not None]
    return "\n".join([entry["name"], *lines, ""])
