"""Which columns of a file are learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from toprank.exceptions import InputError


def choose_columns(
    path: str, columns: list[str], target: str, features: list[str] | None, ignore: Sequence[str]
) -> list[str]:
    """The features, after a look at whether all names are there, once."""
    left_out = {target, *ignore}
    chosen = [name for name in columns if name not in left_out] if features is None else list(features)
    times = Counter(columns)
    for name in (target, *chosen):
        if times[name] != 1:
            has = "no column" if not times[name] else "several columns"
            raise ValueError(f"{path!r} has {has} {name!r}; its columns are {_listed(columns)}")
    if ignore and not chosen:
        raise InputError.saying(
            "no column of {path!r} is left to learn from; leave out fewer columns by {ignore=}", path=path
        )
    if target in chosen or not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(
            f"features must name columns other than the target {target!r}, each once, got {_listed(chosen)}"
        )
    return chosen


def _listed(names: list[str], most: int = 12) -> str:
    return ", ".join(map(repr, names[:most])) + (f", … ({len(names)} in all)" if len(names) > most else "")
