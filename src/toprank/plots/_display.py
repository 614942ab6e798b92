"""What the displays share: from scores or a model to data, and from data to a drawing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from io import BytesIO
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils._response import _get_response_values_binary

from toprank.docstrings import fill_class
from toprank.inspection import model_name
from toprank.plots._style import new_axes
from toprank.plots._texts import TEXTS
from toprank.positive_class import warn_if_not_asked
from toprank.ranking.ranked_list import RankedList

RULES = ("max_fpr", "k", "threshold")

# The scores that a classifier is asked for, in this order, and the score above which it predicts the positive class.
OWN_THRESHOLD = {"decision_function": 0.0, "predict_proba": 0.5}


class Drawing:
    """What has been drawn somewhere; a notebook shows it by itself."""

    ax_: Any
    figure_: Any
    _own_figure = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fill_class(cls, TEXTS | {"data_class": getattr(cls, "data_class", cls).__name__})

    def _start(self, ax: Any) -> Any:
        """Find the axes and remember them."""
        self._own_figure = ax is None
        self.ax_, self.figure_ = new_axes(type(self).__name__, ax)
        return self.ax_

    def _repr_png_(self) -> bytes | None:
        """The picture, for notebooks; a figure that the user made is shown by whoever made it."""
        if not self._own_figure:
            return None
        buffer = BytesIO()
        self.figure_.savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()


class Display(Drawing):
    """Base of the displays of a ranked list; a subclass says which data it computes and how they are drawn."""

    data_class: ClassVar[Any]
    """Computes the data, by its `from_ranking`."""
    marks_threshold: ClassVar[bool] = False
    """Whether the threshold of a model is marked unless another rule is given."""

    plot: Callable[..., Self]
    """Draws on given or new axes."""

    def __init__(self, data: Any, *, name: str | None = None) -> None:
        self.data = data
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        plot_kwargs: dict[str, Any] | None = None,
        **parameters: Any,
    ) -> Self:
        """Compute and draw from labels and scores.

        Parameters
        ----------
        {rows}
        {weights}
        name : str, optional
            Name in the legend.
        {drawing}
        **parameters
            Parameters of the computation, see the class.

        {drawn}
        """
        cls._check_parameters(parameters)
        ranked = RankedList.from_predictions(y_true, y_score, sample_weight=sample_weight, pos_label=pos_label)
        display = cls(cls.data_class.from_ranking(ranked, **parameters), name=name)
        return display.plot(ax=ax, **(plot_kwargs or {}))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        plot_kwargs: dict[str, Any] | None = None,
        **parameters: Any,
    ) -> Self:
        """Compute and draw from a fitted model and rows that it has not seen.

        The scores are those of `decision_function`, or of `predict_proba` where there is none.

        Parameters
        ----------
        {model}
        {sample_weight}
        pos_label : label, optional
            The positive class; by default the second of the classes of the model.
        name : str, optional
            Name in the legend; by default that of the class of the model.
        {drawing}
        **parameters
            Parameters of the computation, see the class.

        {drawn}
        """
        scores, pos_label, threshold = scores_of(estimator, X, pos_label, y)
        parameters = cls._with_threshold(parameters, threshold)
        return cls.from_predictions(
            y,
            scores,
            sample_weight=sample_weight,
            pos_label=pos_label,
            name=model_name(estimator) if name is None else name,
            ax=ax,
            plot_kwargs=plot_kwargs,
            **parameters,
        )

    @classmethod
    def _with_threshold(cls, parameters: dict[str, Any], threshold: float | None) -> dict[str, Any]:
        """Add the threshold of the model where the display marks it and the user gave no rule."""
        if not cls.marks_threshold or any(parameters.get(rule) is not None for rule in RULES):
            return parameters
        return {**parameters, "threshold": threshold}

    @classmethod
    def _check_parameters(cls, parameters: dict[str, Any]) -> None:
        accepted = [name for name in inspect.signature(cls.data_class.from_ranking).parameters if name != "ranked"]
        for name in parameters:
            if name not in accepted:
                raise TypeError(
                    f"{cls.__name__} has no parameter {name!r}; the computation takes {', '.join(accepted)}, and what "
                    "plot() takes goes into plot_kwargs"
                )


def scores_of(
    estimator: Any, X: Any, pos_label: Any = None, y: ArrayLike | None = None
) -> tuple[NDArray[Any], Any, float | None]:
    """Scores of the rows, larger for more likely positives, the positive label, and the threshold of the model.

    For a classifier the label is by default the second class, with a warning where that is a guess and `y` is given,
    and the scores are turned round if it is the first. A ranker or a regressor has scores for larger labels and no
    threshold; the label is what the user says, or of two levels the better one.
    """
    if is_classifier(estimator):
        if pos_label is None and y is not None and len(getattr(estimator, "classes_", ())) == 2:
            warn_if_not_asked(estimator, y)
        scores, label, method = _get_response_values_binary(
            estimator, X, response_method=list(OWN_THRESHOLD), pos_label=pos_label, return_response_method_used=True
        )
        return np.asarray(scores), label, OWN_THRESHOLD[method]
    response = getattr(estimator, "decision_function", None) or getattr(estimator, "predict", None)
    if response is None:
        raise TypeError(
            f"{type(estimator).__name__} has neither decision_function nor predict; give scores to from_predictions"
        )
    levels = getattr(estimator, "classes_", None)
    if pos_label is None and levels is not None and len(levels) == 2:
        pos_label = levels.tolist()[1]
    return np.asarray(response(X)), pos_label, None
