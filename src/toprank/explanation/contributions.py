"""What each column adds to the score of a row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from toprank.arrays import Floats, Rows
from toprank.decision import AlertShareClassifier, NeymanPearsonClassifier
from toprank.exceptions import InputError
from toprank.explanation.source_columns import source_columns
from toprank.inspection import Anatomy, Part, anatomy, column_names, linear_coefficients, reads_tables


class Contributions(NamedTuple):
    """What each column adds to the score of each row.

    Attributes
    ----------
    names : list of str
        Names of the columns; x0, x1, … where they have none.
    values : ndarray of shape (n_rows, n_columns)
        What a column adds, against the mean.
    base : ndarray of shape (n_rows,)
        The mean score; with what all columns add it is the decision function of a row.
    data : {ndarray, CSR array, dataframe} of shape (n_rows, n_columns)
        The rows: as they were given, or as the model gets them where it is not known which column a feature is made of.
    """

    names: list[str]
    values: Floats
    base: Floats
    data: Any


def contributions(model: Any, X: Any, *, background: Any = None) -> Contributions:
    r"""How much each column adds to the score of each row, against the mean: score = base + sum of contributions.

    Linear models: :math:`w_j (x_j - \bar x_j)`, with the mean :math:`\bar x_j` of the background. What a preparation,
    such as scaling, gaps that are filled and marked, or one column of 0 and 1 for each category, makes of one column
    is summed up to that column.

    `TopForest`: Shapley values, by the shares of the training rows that go each way at a split (path-dependent
    TreeSHAP), exact. Features that go together share what they say.

    Parameters
    ----------
    model : estimator
        A fitted linear model or a `TopForest`, also inside pipelines, searches and decision rules. Of a rule with
        several models, in each row that one counts whose score decides.
    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_columns)
        Rows to explain, as the model takes them.
    background : rows like X, optional
        Rows to compare with, such as the training rows; only for linear models. Not needed where all features are
        standardised, as their means are known then, and for models of files, which know those of their training.

    Returns
    -------
    Contributions
        Names, values and base.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import PatMatNP, contributions
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0], [4.0, 2.0]]), [0, 0, 1, 1]
    >>> model = PatMatNP(tau=0.5).fit(X, y)
    >>> found = contributions(model, X, background=X)
    >>> bool(np.allclose(found.base + found.values.sum(axis=1), model.decision_function(X)))
    True
    """
    check_is_fitted(model)
    parts, means = _inside(model)
    names = None
    if reads_tables(model):
        names = getattr(model, "feature_names_in_", None)
        X, background = model.rows(X), None if background is None else model.rows(background)
    X = X if issparse(X) or hasattr(X, "columns") else np.asarray(X)
    names = column_names(X) if names is None else [str(name) for name in names]
    found = [_of_part(part, X, names, background, means) for part in parts.parts]
    thresholds = _thresholds(parts)
    margins = [each.base + each.values.sum(axis=1) - t for each, t in zip(found, thresholds, strict=True)]
    decides = np.argmin(margins, axis=0)
    values = np.stack([each.values for each in found])[decides, np.arange(len(decides))]
    base = np.array([each.base[0] for each in found]) - thresholds if len(decides) else np.zeros(len(found))
    return Contributions(found[0].names, values, base[decides], found[0].data)


def needs_background(model: Any) -> bool:
    """Whether `contributions` to the score of a fitted model can be measured only from rows that are given."""
    parts, means = _inside(model)
    linear = [part for part in parts.parts if not hasattr(part.estimator, "contributions")]
    return means is None and any(_known_means(part) is None for part in linear)


def _inside(model: Any) -> tuple[Anatomy, Floats | None]:
    """What is in a model, and the means of its features if it reads tables and knows them."""
    if reads_tables(model):
        return anatomy(model.estimator_), getattr(model, "means_", None)
    return anatomy(model), None


def _of_part(part: Part, X: Any, names: list[str], background: Any, means: Floats | None) -> Contributions:
    """Contributions to the score of one estimator."""
    estimator, prepared = part.estimator, part.prepare(X)
    if hasattr(estimator, "contributions"):
        by_feature, base = estimator.contributions(prepared)
        of_mean = np.zeros(by_feature.shape[1])
    else:
        coefficients = linear_coefficients(estimator)
        if coefficients is None:
            raise InputError.of(
                "model", estimator, "must be linear or a TopForest, so that its score is a sum over columns",
                "use one of these",
            )  # fmt: skip
        by_feature = _products(prepared, coefficients)
        of_mean = _means(part, background, means) * coefficients
        base = float(of_mean.sum() + np.ravel(getattr(estimator, "intercept_", 0.0))[0])
    columns = _source_columns(part, X.shape[1])
    data = X
    if columns is None or len(columns) != len(of_mean):  # then each feature stands for itself
        columns, data = np.arange(len(of_mean)), prepared
        names = part.names(names) or column_names(prepared)
    together = csr_array((np.ones(len(columns)), (np.arange(len(columns)), columns)), shape=(len(columns), len(names)))
    values = by_feature @ together
    values = (values.toarray() if issparse(values) else np.asarray(values)) - of_mean @ together
    return Contributions(names, values, np.full(len(values), base), data.tocsr() if issparse(data) else data)


def _products(X: Any, coefficients: Floats) -> Any:
    """The terms of a linear score."""
    return (
        csr_array(X).multiply(coefficients).tocsr() if issparse(X) else np.asarray(X, dtype=np.float64) * coefficients
    )


def _source_columns(part: Part, n_columns: int) -> Rows | None:
    """Which of the columns each feature comes from, None if that is not known."""
    columns: Rows | None = np.arange(n_columns)
    for step in part.preparation:
        columns = None if columns is None else source_columns(step, columns)
    return columns


def _means(part: Part, background: Any, means: Floats | None) -> Floats:
    """The mean of each feature that an estimator gets."""
    if background is not None:
        return mean_of_features(part, background)
    means = _known_means(part) if means is None else means
    if means is not None:
        return means
    raise InputError.saying(
        "contributions are measured from the mean of the training rows, which this model does not know; give the rows "
        "by {background=X_train}",
        elsewhere="reasons are measured from the mean of the training rows, which this model does not know; use a "
        "model of toprank fit",
    )


def _known_means(part: Part) -> Floats | None:
    """The means of features that are standardised, None for others."""
    last = part.steps[-1] if part.steps else None
    if isinstance(last, StandardScaler) and last.with_mean:
        return np.zeros(len(last.scale_ if last.with_std else last.mean_))
    return None


def mean_of_features(part: Part, X: Any) -> Floats:
    """The mean over some rows of what an estimator gets."""
    prepared = part.prepare(X)
    rows = prepared if issparse(prepared) else np.asarray(prepared, dtype=np.float64)
    return np.asarray(rows.mean(axis=0), dtype=np.float64).ravel()


def _thresholds(parts: Anatomy) -> Floats:
    """What rules subtract from the score of each part; a threshold of probabilities is on another scale."""
    thresholds = np.zeros(len(parts.parts))
    for level in parts.levels:
        if not isinstance(level, NeymanPearsonClassifier | AlertShareClassifier):
            continue
        if level.response_method != "predict_proba":
            thresholds += getattr(level, "thresholds_", level.threshold_)
        elif len(thresholds) > 1:
            raise InputError.of(
                "response_method", level.response_method, "of several models is no sum over columns",
                "use {response_method='decision_function'}",
            )  # fmt: skip
    return thresholds
