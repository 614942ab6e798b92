"""Which of two labels is the positive class: the one that the user names, else 1, else the last in sorted order."""

from __future__ import annotations

import difflib
import sys
import warnings
from inspect import signature
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import is_dask
from toprank.exceptions import InputError, Message, PositiveClassWarning

POS_LABEL_TEXT = """\
pos_label : label, optional
    The positive class, the one to find; it becomes ``classes_[1]``. By default 1, for labels 0 and 1, -1 and 1, or
    False and True. Of other labels the last in sorted order is taken, with a `PositiveClassWarning`."""

# A class that so large a share of the rows has is hardly the one to find.
MAJORITY = 0.9
# Whose lines a warning does not point at.
_INNER = ("toprank", "sklearn", "joblib")
# Where scikit-learn has its scorers; ours are elsewhere, and ask the model.
_SCORERS = "sklearn.metrics._scorer"
# What was said, and to which line.
_SAID: set[tuple[str, str, int]] = set()


def are_usual(labels: list[Any]) -> bool:
    """Whether two sorted labels are 0 and 1, -1 and 1, or False and True, of which 1 is positive without a word."""
    return labels in ([0, 1], [-1, 1])


def in_order(classes: NDArray[Any], pos_label: Any) -> NDArray[Any]:
    """Two sorted classes as [negative, positive]; without `pos_label` as they are."""
    if pos_label is None:
        return classes
    return classes if require_label(pos_label, classes.tolist()) == 1 else classes[::-1].copy()


def require_label(pos_label: Any, labels: list[Any]) -> int:
    """The place of `pos_label` among labels; an error names these."""
    for place, label in enumerate(labels):
        if isinstance(label, str) == isinstance(pos_label, str) and label == pos_label:
            return place
    raise InputError.of(
        "pos_label",
        pos_label,
        "must be one of the labels, which are {found}",
        "{meant}",
        found=labels_text(labels),
        meant=did_you_mean(pos_label, labels),
    )


def did_you_mean(given: Any, labels: list[Any]) -> str:
    """A question for the label that may be meant by one that is not there, capital letters aside; empty if none is."""
    texts = {str(label).lower(): label for label in labels}
    close = difflib.get_close_matches(str(given).strip().lower(), texts, n=1)
    return f"did you mean {texts[close[0]]!r}?" if close else ""


def labels_text(labels: list[Any], most: int = 5) -> str:
    """Labels as the user wrote them, the first ones of many."""
    shown = ", ".join(repr(label) for label in labels[:most])
    return shown + (f", … ({len(labels)} in all)" if len(labels) > most else "")


def warn_if_guessed(classes: NDArray[Any], share: float, owner: str) -> None:
    """Warn where the second class, of a share of the rows, was taken without a word, and another one may be meant.

    That is where labels say nothing of it, such as words, and where nearly all rows have the class.
    """
    negative, positive = classes.tolist()
    often = f"which {MAJORITY * 100:.0f} % of the rows or more have"
    if not are_usual([negative, positive]):
        warn_user(
            Message(
                "{owner} takes {taken!r} for the positive class{often}, the last of the labels {other!r} and {taken!r} "
                "in sorted order; say which one is to be found, for instance by {pos_label=}",
                owner=owner,
                taken=positive,
                other=negative,
                often=f", {often}" if share >= MAJORITY else "",
                pos_label=negative if share > 0.5 else positive,
            )
        )
    elif share >= MAJORITY:
        warn_user(
            Message(
                "{owner} takes {taken!r} for the positive class, {often}; if the others are to be found, use "
                "{pos_label=}, and if it is meant so, name {taken!r} there",
                elsewhere="{owner} looks for the positive label, {often}; if the others are to be found, name their "
                "label by {positive=}",
                owner=owner,
                taken=positive,
                often=often,
                pos_label=negative,
            )
        )


def warn_if_not_asked(model: Any, labels: Any, owner: str = "{}") -> None:
    """Warn that the second class of a model is taken, unless that has a `pos_label` and warns itself.

    So models of scikit-learn are meant, with labels such as words, an array or one of Dask. In `owner` the braces are
    the name of the class, of a pipeline that of its last step.
    """
    asked = any(name.rsplit("__", 1)[-1] == "pos_label" for name in getattr(model, "get_params", dict)())
    if not asked and not are_usual(model.classes_.tolist()):
        last = model.steps[-1][1] if hasattr(model, "steps") else model
        labels = labels if is_dask(labels) else np.asarray(labels)
        share = float((labels == model.classes_[1]).mean())
        warn_if_guessed(model.classes_, share, owner.format(type(last).__name__))


def warn_of_sorted_scorer(classes: NDArray[Any]) -> None:
    """Warn where scikit-learn asks a model for scores to measure them by a metric that knows no positive class.

    Such a metric, as its `roc_auc_score`, takes the last label in sorted order, while the scores of a model are for the
    last one of its `classes_`: where these are not sorted, it gives one minus the area, and a search takes the worst.
    The scorer cannot be told; it is found among those who have called.
    """
    negative, positive = classes.tolist()
    if negative < positive:
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == _SCORERS:
            scorer: Any = frame.f_locals.get("self")
            metric: Any = getattr(scorer, "_score_func", None)
            measures_scores = metric is not None and scorer._response_method != "predict"
            if measures_scores and "pos_label" not in signature(metric).parameters:
                warn_user(
                    f"{metric.__name__} of scikit-learn takes {negative!r} for the positive class, the last label in "
                    f"sorted order, and the model {positive!r}; use toprank.metrics.get_scorer('roc_auc'), or fit to "
                    f"y == {positive!r}"
                )
                return
        frame = frame.f_back


def warn_user(message: str) -> None:
    """Give a `PositiveClassWarning` that points at the line of the user, once for that line.

    Python forgets what it has shown wherever warnings are caught, as in each fit of a search, so it is noted here.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INNER:
        level, frame = level + 1, frame.f_back
    said = (str(message), frame.f_code.co_filename, frame.f_lineno)
    if said not in _SAID or _shows_all():
        _SAID.add(said)
        warnings.warn(message, PositiveClassWarning, stacklevel=level)


def _shows_all() -> bool:
    """Whether the user wants every warning, or none, or an error; without a word of the user each is shown once."""
    chosen = (
        action
        for action, text, category, module, _ in warnings.filters
        if text is None and module is None and issubclass(PositiveClassWarning, category)
    )
    return next(chosen, "default") not in ("default", "module", "once")
