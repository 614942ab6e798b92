"""A model with the columns of the table that it was fitted to."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from toprank.explanation.contributions import mean_of_features
from toprank.files.columns import prepared
from toprank.files.errors import TableError
from toprank.files.spelling import Spelling
from toprank.files.summary_state import COLUMNS, SUMMARY
from toprank.inspection import anatomy, linear_coefficients
from toprank.saved_state import (
    FEATURES,
    FLAG,
    TWO_CLASSES,
    WORD,
    Array,
    Items,
    Kind,
    Part,
    Record,
    Schema,
    Table,
    count,
)

_MAYBE_WORD = Kind((str,), none=True)
_LATER_WORD = Kind((str,), none=True, optional=True)  # files of earlier versions have none
_READING = Table(
    {
        "missing": Items(WORD),
        "marks": Table(others=Record((WORD, WORD))),
        "encoding": _MAYBE_WORD,
    },
    none=True,
    optional=True,  # files of earlier versions have none
)
_NEGATIVES = Table({"rows": count(1), "above": count(), "quantiles": Array("f8", (None,))}, optional=True)

# Rows over which means are taken, at most.
_MOST_ROWS_OF_MEANS = 100_000


class TableModel(ClassifierMixin, BaseEstimator):
    """An estimator with the names and kinds of its columns: what the command line saves.

    It takes tables as they are, with columns in any order and more than it needs, and gives the estimator what it was
    fitted to. Labels are 1 for positives and 0 for others.

    Parameters
    ----------
    estimator : estimator
        A pipeline of `toprank.files.estimators`, alone or in a `NeymanPearsonClassifier`.
    columns : dict, optional
        Names and kinds of the columns, as `toprank.files.columns.choose_columns` finds them; None for svmlight rows.
    as_array : bool, default=False
        Whether the estimator takes an array of numbers instead of a frame.
    target : str, optional
        Name of the target.
    positive : str, optional
        The positive label.
    id_column : str, optional
        Name of the column that identifies a row.
    zero_based : bool, default=False
        Whether indices of svmlight files start at 0.
    time : str, optional
        Name of the column with the time of a row, by which alerts are counted.
    amount : str, optional
        Name of the column with the amount of a row, of which the part that is found is measured.
    reading : dict, optional
        How the file of the fit writes missing values and numbers, as `toprank.files.spelling` records it; other tables
        are read so too.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    classes_ : ndarray of shape (2,)
        0 and 1.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns; not for svmlight rows.
    n_features_in_ : int
        Number of columns.
    summary_ : dict
        What is known of the training, in plain data; empty unless the command line filled it.
    negatives_ : dict
        The scores of the negatives held out in the fit, of which at most 1,000 are kept, by which a drift is found;
        there only if `fit_file` held out rows.
    means_ : ndarray of shape (n_features,)
        The mean of each feature that the estimator gets, over at most 100,000 training rows; only of linear models.

    Examples
    --------
    >>> import polars
    >>> from toprank import PatMatNP
    >>> from toprank.files import TableModel
    >>> from toprank.files.estimators import table_pipeline
    >>> table = polars.DataFrame({"amount": [1.0, 9.0, 2.0, None], "country": ["DE", "FR", "DE", "DE"]})
    >>> columns = {"amount": "number", "country": "category"}
    >>> model = TableModel(table_pipeline(columns, PatMatNP()), columns).fit(table, [0, 1, 0, 0])
    >>> int(model.decision_function(table).argmax())
    1
    """

    saved_state: ClassVar[Schema] = Schema(
        {
            "estimator": Part(("fit",)),
            "columns": COLUMNS,
            "as_array": FLAG,
            "target": _MAYBE_WORD,
            "positive": _MAYBE_WORD,
            "id_column": _MAYBE_WORD,
            "zero_based": FLAG,
            "time": _LATER_WORD,
            "amount": _LATER_WORD,
            "reading": _READING,
            **FEATURES,
            "estimator_": Part(("decision_function",)),
            "classes_": TWO_CLASSES,
            "summary_": SUMMARY,
            "negatives_": _NEGATIVES,
            "means_": Array("f8", (None,), optional=True),  # files of earlier versions have none
        },
        fitted="estimator_",
        before=(
            *("estimator", "columns", "as_array", "target", "positive", "id_column", "zero_based", "time", "amount"),
            "reading",
        ),
        relations={
            "as many features as columns": lambda known: (
                known["columns"] is None or len(known["columns"]) == known["n_features_in_"]
            )
        },
    )

    def __init__(
        self,
        estimator: Any,
        columns: dict[str, str] | None = None,
        *,
        as_array: bool = False,
        target: str | None = None,
        positive: str | None = None,
        id_column: str | None = None,
        zero_based: bool = False,
        time: str | None = None,
        amount: str | None = None,
        reading: dict[str, Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.columns = columns
        self.as_array = as_array
        self.target = target
        self.positive = positive
        self.id_column = id_column
        self.zero_based = zero_based
        self.time = time
        self.amount = amount
        self.reading = reading

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the estimator.

        Parameters
        ----------
        X : dataframe or CSR array
            A table with at least the columns, or svmlight rows.
        y : array-like of shape (n_rows,)
            1 for positives and 0 for others.

        Returns
        -------
        self
            The fitted model.
        """
        rows = self.rows(X)
        return self.keep_fitted(clone(self.estimator).fit(rows, np.asarray(y))).keep_means(rows)

    def keep_means(self, rows: Any) -> Self:
        """Keep the means, over the training rows, of what a linear estimator gets: reasons are measured from them."""
        found = anatomy(self.estimator_).parts
        if len(found) == 1 and linear_coefficients(found[0].estimator) is not None:
            step = -(-rows.shape[0] // _MOST_ROWS_OF_MEANS)
            self.means_ = mean_of_features(found[0], rows[::step])
        return self

    def keep_fitted(self, estimator: Any) -> Self:
        """Take an estimator that is fitted already, to rows as `rows` makes them."""
        self.estimator_ = estimator
        self.classes_ = np.array([0, 1])
        self.summary_: dict[str, Any] = {}
        for name in ("feature_names_in_", "negatives_", "means_"):
            self.__dict__.pop(name, None)
        if self.columns is None:
            self.n_features_in_ = int(estimator.n_features_in_)
        else:
            self.feature_names_in_ = np.array(list(self.columns), dtype=object)
            self.n_features_in_ = len(self.columns)
        return self

    @property
    def inner(self) -> Any:
        """The estimator that gets the rows, fitted if it is."""
        return getattr(self, "estimator_", self.estimator)

    def rows(self, X: Any) -> Any:
        """A table, or svmlight rows, as the estimator takes it: the columns of the model alone."""
        if (self.columns is None) != issparse(X):
            needs = "rows of an svmlight file" if self.columns is None else f"a table with {len(self.columns)} columns"
            raise TableError(f"the model takes {needs}, got {type(X).__name__}; give what it was fitted to")
        if self.columns is None:
            return X
        frame = prepared(X, self.columns, Spelling.of_model(self.reading))
        return frame.to_numpy() if self.as_array else frame

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score minus threshold: above zero means positive.

        Parameters
        ----------
        X : dataframe or CSR array
            A table with at least the columns, or svmlight rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Larger for more likely positives.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(self.rows(X)), dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """1 where the decision function is above zero, else 0.

        Parameters
        ----------
        X : dataframe or CSR array
            A table with at least the columns, or svmlight rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(np.intp)])
