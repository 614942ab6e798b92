"""Which features matter most: coefficients of a linear model, else what is lost when a column is shuffled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing, get_tags

from toprank.inspection import Anatomy, Part, column_names, linear_coefficients
from toprank.metrics import partial_auc_score
from toprank.plots._display import scores_of
from toprank.ranking.tie_runs import Floats

MOST_SHOWN = 20
# Limits of the shuffling: rows of each class, columns, shuffles of each.
MOST_POSITIVES, MOST_NEGATIVES = 500, 1500
MOST_COLUMNS = 200
REPEATS = 5
# With many columns the sample is smaller, so that no more rows than these are scored in all.
MOST_SCORED = 400_000
TOP_FPR = 0.1


@dataclass(frozen=True)
class Importance:
    """Names and values, most important first; `spread` is the standard deviation over shuffles, if any."""

    kind: str
    names: list[str]
    values: Floats
    spread: Floats | None
    n_features: int
    note: str


def importance(model: Any, parts: Anatomy, X: Any, positive: NDArray[np.bool_], pos_label: Any) -> Importance | str:
    r"""The most important features, or a sentence that says why there are none.

    Linear models: the standardised coefficient :math:`w_j \sigma_j`, by how much the score changes when feature j, as
    the last step gets it, grows by one standard deviation of the held-out rows; the mean over the models of a vote.

    Others: how much the partial area under the ROC curve up to a false positive rate of 10 % falls when the values of
    one column are shuffled among a fixed sample of rows, mean and standard deviation of five shuffles. The sample has
    at most 500 positives and 1500 negatives, fewer with more than 40 columns; the area does not depend on their ratio.
    """
    effects = [_standardised_coefficients(part, X) for part in parts.parts]
    linear = [effect for effect in effects if effect is not None]
    if len(linear) == len(effects) and len({len(effect) for effect in linear}) == 1:
        # scores are turned round where the first class is the positive one
        sign = -1.0 if is_classifier(model) and pos_label == model.classes_[0] else 1.0
        return _most_weighty(sign * np.mean(linear, axis=0), parts.parts[0], X)
    if get_tags(model).input_tags.pairwise:
        return "The columns of a precomputed kernel are rows of the training data, so there are no features to rank."
    columns = column_names(X)
    if len(columns) > MOST_COLUMNS:
        return (
            f"Shuffling columns is done for at most {MOST_COLUMNS} columns, and this model reads {len(columns)}; "
            "nothing was computed."
        )
    return _shuffled(model, X, columns, positive, pos_label)


def _standardised_coefficients(part: Part, X: Any) -> Floats | None:
    """Coefficients times the standard deviations of what they multiply, or None if the score is not linear in it."""
    coefficients = linear_coefficients(part.estimator)
    if coefficients is None:
        return None
    deviations = _deviations(part.prepare(X))
    return np.asarray(coefficients * deviations) if len(coefficients) == len(deviations) else None


def _deviations(X: Any) -> Floats:
    """Standard deviations of the columns."""
    if issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        return np.asarray(np.sqrt(np.maximum(squares - mean**2, 0.0)), dtype=np.float64)
    return np.asarray(np.asarray(X, dtype=np.float64).std(axis=0))


def _most_weighty(mean: Floats, part: Part, X: Any) -> Importance:
    """The largest standardised coefficients with the names that the preparation gives them."""
    given = column_names(X)
    names = part.names(given)
    if names is None or len(names) != len(mean):
        names = given if len(given) == len(mean) else [f"x{number}" for number in range(len(mean))]
    order = np.argsort(-np.abs(mean), kind="stable")[:MOST_SHOWN]
    note = (
        "Standardised coefficients: by how much the score changes when the feature grows by one standard deviation of "
        "the held-out rows. Positive values raise a row in the list. Features that go together share their weight."
    )
    return Importance("coefficient", [names[j] for j in order], mean[order], None, len(mean), note)


def _shuffled(model: Any, X: Any, columns: list[str], positive: NDArray[np.bool_], pos_label: Any) -> Importance:
    random = np.random.default_rng(0)
    rows = _sample(
        positive, random, min(1.0, MOST_SCORED / (REPEATS * len(columns) * (MOST_POSITIVES + MOST_NEGATIVES)))
    )
    X, labels = _rows_of(X, rows), positive[rows]

    def area(sample: Any) -> float:
        scores = scores_of(model, sample, pos_label)[0]
        return partial_auc_score(labels, scores, max_fpr=TOP_FPR, pos_label=True)

    whole = area(X)
    orders = [random.permutation(len(rows)) for _ in range(REPEATS)]
    losses = np.array(
        [[whole - area(_with_shuffled(X, column, order)) for order in orders] for column in range(len(columns))]
    )
    mean = losses.mean(axis=1)
    order = np.argsort(-mean, kind="stable")[:MOST_SHOWN]
    note = (
        f"What is lost of the partial area under the ROC curve (FPR up to 10 %; {whole:.3f} as it is, 0.5 by chance) "
        f"when a column is shuffled: mean and standard deviation of {REPEATS} shuffles of {len(rows):,} rows. "
        "A column that others can stand in for looks less important than it is."
    )
    spread = losses.std(axis=1)[order]
    return Importance("loss", [columns[j] for j in order], mean[order], spread, len(columns), note)


def _sample(positive: NDArray[np.bool_], random: np.random.Generator, share: float) -> NDArray[np.intp]:
    """Rows of both classes, at most a share of the limits of each."""
    limits = ((np.flatnonzero(positive), MOST_POSITIVES), (np.flatnonzero(~positive), MOST_NEGATIVES))
    chosen = [
        rows if len(rows) <= share * most else random.choice(rows, int(share * most), replace=False)
        for rows, most in limits
    ]
    return np.sort(np.concatenate(chosen))


def _rows_of(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows; of a sparse matrix as a dense one, which is small."""
    if issparse(X):
        return X.tocsr()[rows].toarray()
    return _safe_indexing(X, rows)


def _with_shuffled(X: Any, column: int, order: NDArray[np.intp]) -> Any:
    """The same rows with one column in another order; a table stays a table of its kind."""
    if hasattr(X, "with_columns"):  # polars
        return X.with_columns(X.to_series(column)[order])
    shuffled = X.copy()
    if hasattr(X, "iloc"):  # pandas
        shuffled.isetitem(column, X.iloc[order, column].array)
    else:
        shuffled[:, column] = X[order, column]
    return shuffled
