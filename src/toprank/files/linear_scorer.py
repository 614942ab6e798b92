"""Scores of a linear model on a table as one matrix product and a look-up for each categorical column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.files.columns import CATEGORY
from toprank.files.errors import TableError
from toprank.files.spelling import polars

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LinearScorer:
    r"""What imputation, scaling, one-hot columns and coefficients amount to.

    .. math:: s(x) = b + \sum_j v_j (x_j - c_j) + \sum_{j\,\text{missing}} u_j + \sum_l g_l(x_l)

    with `slopes` v and `centres` c of the columns of `numbers`; v (x - c) is left out where x is missing, which has its
    own term u, `if_missing`. `categories` holds for each categorical column the values of g by category, and that of an
    unknown one; `constant` is b.
    """

    numbers: list[str]
    slopes: Floats
    centres: Floats
    if_missing: Floats
    categories: dict[str, tuple[dict[str, float], float]]
    constant: float

    def __call__(self, frame: Any) -> Floats:
        """Scores of the rows of a prepared frame."""
        pl = polars()
        scores = np.full(len(frame), self.constant)
        if self.numbers:
            scores += self._of_numbers([frame[name].to_numpy() for name in self.numbers])
        for name, (values, unknown) in self.categories.items():
            found = frame[name].replace_strict(
                list(values), list(values.values()), default=unknown, return_dtype=pl.Float64
            )
            scores += found.to_numpy()
        return scores

    def _of_numbers(self, columns: list[Floats]) -> Floats:
        # column by column: what is added up stays in the cache, and no matrix is made
        scores, term = np.zeros(len(columns[0])), np.empty(len(columns[0]))
        with np.errstate(invalid="ignore", over="ignore"):
            for values, slope, centre in zip(columns, self.slopes, self.centres, strict=True):
                np.subtract(values, centre, out=term)
                term *= slope
                scores += term
            rows = np.flatnonzero(~np.isfinite(scores))  # missing values, or infinite ones
            if len(rows):
                scores[rows] = self._with_missing(np.column_stack([values[rows] for values in columns]), rows)
        return scores

    def _with_missing(self, X: Floats, rows: NDArray[np.intp]) -> Floats:
        """Scores of some rows; an error if a value is not finite."""
        missing = np.isnan(X)
        scores = np.where(missing, 0.0, X - self.centres) @ self.slopes + missing @ self.if_missing
        wrong = np.flatnonzero(~np.isfinite(scores))
        if len(wrong):
            largest = int(np.argmax(np.where(missing[wrong[0]], 0.0, np.abs(X[wrong[0]]))))
            raise NotFiniteError(int(rows[wrong[0]]), self.numbers[largest])
        return np.asarray(scores)


class NotFiniteError(TableError):
    """A score is not finite: the number of the row in the batch, and the column of its largest value."""

    def __init__(self, row: int, column: str) -> None:
        super().__init__(f"row {row + 1} has an infinite or too large value in the column {column!r}")
        self.row = row
        self.column = column


def linear_scorer(model: Any) -> LinearScorer | None:
    """The scorer of a `TableModel`, equal to its `decision_function` but for rounding; None if it is not linear.

    So it is for kernels, votes of several models, arrays and sparse rows.
    """
    from toprank.inspection import linear_coefficients

    pipeline, shift = _single(model.estimator_)
    if model.columns is None or pipeline is None or [name for name, _ in pipeline.steps] != ["columns", "rank"]:
        return None
    transformer, ranker = (step for _, step in pipeline.steps)
    coefficients = linear_coefficients(ranker)
    number = transformer.named_transformers_.get("number")
    if number is not None and not _marks_and_scales(number):
        return None
    if coefficients is None or not hasattr(ranker, "intercept_"):
        return None
    slices = {name: coefficients[transformer.output_indices_[name]] for name in transformer.named_transformers_}
    numbers = [name for name, kind in model.columns.items() if kind != CATEGORY]
    slopes = centres = if_missing = np.zeros(0)
    constant = float(ranker.intercept_[0]) - shift
    if numbers:
        slopes, centres, if_missing, added = _of_numbers(transformer.named_transformers_["number"], slices["number"])
        constant += added
    categories: dict[str, tuple[dict[str, float], float]] = {}
    if "category" in slices:
        names = [name for name, kind in model.columns.items() if kind == CATEGORY]
        categories = _of_categories(transformer.named_transformers_["category"], names, slices["category"])
    return LinearScorer(numbers, slopes, centres, if_missing, categories, constant)


def _single(estimator: Any) -> tuple[Any, float]:
    """The pipeline of an estimator, and the threshold to subtract from its scores."""
    from sklearn.pipeline import Pipeline

    from toprank.decision import NeymanPearsonClassifier

    shift = 0.0
    if isinstance(estimator, NeymanPearsonClassifier):
        if len(estimator.estimators_) != 1 or estimator.response_method == "predict_proba":
            return None, 0.0
        estimator, shift = estimator.estimators_[0], float(estimator.thresholds_[0])
    return (estimator, shift) if isinstance(estimator, Pipeline) else (None, 0.0)


def _marks_and_scales(pipeline: Any) -> bool:
    """Whether numbers are prepared as `fit` does it; a stream may be asked for something else."""
    return "scale" in pipeline.named_steps and pipeline.named_steps["impute"].indicator_ is not None


def _of_numbers(pipeline: Any, w: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Slopes, centres, terms of missing values, and the constant of an imputer and a scaler.

    A feature j is (x_j - mean_j) / scale_j, with the median for a missing x_j; the indicators follow the features.
    """
    imputer, scaler = pipeline.named_steps["impute"], pipeline.named_steps["scale"]
    medians = np.asarray(imputer.statistics_, dtype=np.float64)
    d = len(medians)
    scaled = w / scaler.scale_
    slopes, centres = scaled[:d], scaler.mean_[:d].copy()
    if_missing = slopes * (medians - centres)
    indicated = imputer.indicator_.features_
    if_missing[indicated] += scaled[d:]
    return slopes, centres, if_missing, -float(scaled[d:] @ scaler.mean_[d:])


def _of_categories(encoder: Any, names: list[str], w: Floats) -> dict[str, tuple[dict[str, float], float]]:
    """Of each column the values by category, and that of an unknown one.

    The columns of 0 and 1 of a categorical column are those of its frequent categories, in their order, and then one of
    the infrequent ones together, if there are such; an unknown category counts as infrequent, or as none.
    """
    table, start = {}, 0
    for name, categories, infrequent in zip(names, encoder.categories_, encoder.infrequent_categories_, strict=True):
        rare = set() if infrequent is None else set(infrequent)
        frequent = [text for text in categories if text not in rare]
        end = start + len(frequent)
        unknown = float(w[end]) if rare else 0.0
        values = {**dict.fromkeys(rare, unknown), **dict(zip(frequent, w[start:end].tolist(), strict=True))}
        table[name] = (values, unknown)
        start = end + bool(rare)
    return table
