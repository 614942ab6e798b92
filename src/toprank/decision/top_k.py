"""Act on the best k rows, or the best share, of each batch or group."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from toprank.arrays import is_dask
from toprank.base import clone_for_scores, labels_of
from toprank.checks import is_count
from toprank.decision._labels import coding_of
from toprank.decision._rows import WrapsClassifier, row_arguments, rows_with_weight
from toprank.decision._scores import RESPONSES, check_response_method, scores_of
from toprank.exceptions import InputError
from toprank.positive_class import warn_of_sorted_scorer
from toprank.ranking.tie_runs import ROUNDING, check_share, group_codes, label_column
from toprank.saved_state import Part, Schema


@dataclass(eq=False, repr=False)
class TopKClassifier(WrapsClassifier):
    r"""Act on the k best rows, or the best share, of each batch or group: 200 alerts a day.

    There is no threshold: a row is positive if fewer than k rows of the batch are ahead of it, so what is predicted for
    a row depends on the rows it comes with. Use it for a budget of actions; for a budget of false alarms take
    `NeymanPearsonClassifier`.

    Ties: among rows of the same score those that come first in the batch are taken first, so the list never is longer
    than the budget and the same batch always gives the same list. Sort the rows if another order is fairer.

    Parameters
    ----------
    estimator : estimator
        A classifier with `decision_function` or `predict_proba`; a fitted one in a ``sklearn.frozen.FrozenEstimator``
        is left as it is.
    k : int, optional
        Number of rows of each batch or group. One with fewer rows is taken whole.
    share : float, optional
        Instead of k: the share of each batch or group, in (0, 1], rounded down to whole rows; a group of fewer than
        ``1 / share`` rows gets none.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        Where scores come from; "auto" takes the first that there is.
    {pos_label} An estimator inside that names one is enough.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model; it was given 0 and 1 for labels other than 0 and 1, -1 and 1, False and True.
    classes_ : ndarray of shape (2,)
        The labels; the second one is the positive class.
    n_features_in_ : int
        Number of features seen in `fit`, if the estimator says it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had names and the estimator keeps them.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import PatMat, TopKClassifier
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(3000, random_state=0)
    >>> model = TopKClassifier(PatMat(), k=20).fit(X[:1000], y[:1000])
    >>> day = np.repeat([1, 2], 1000)
    >>> alert = model.predict(X[1000:], groups=day)
    >>> int(alert[day == 1].sum()), int(alert[day == 2].sum())
    (20, 20)
    """

    saved_state: ClassVar[Schema] = WrapsClassifier._state({"estimator_": Part(RESPONSES)}, fitted="estimator_")

    estimator: Any
    k: int | None = None
    _: KW_ONLY
    share: float | None = None
    response_method: str = "auto"

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Fit the estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe, Dask array or dataframe} of shape (n_samples, n_features)
            Rows, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Two classes, of which `pos_label` is the positive one.
        **params : dict
            Arguments of the estimator's `fit`, such as `sample_weight`; by metadata routing where that is enabled.

        {fitted}
        """
        self._check_parameters()
        return self._learn(X, y, self._routed(params))

    def _fit(self, X: Any, y: NDArray[Any], params: dict[str, Any], *of_splitter: dict[str, Any]) -> None:
        rows_with_weight(y, params)
        coding = coding_of(self, y)
        self.classes_ = np.asarray(coding.classes)
        self.estimator_ = coding.told(clone_for_scores(self.estimator))
        if not isinstance(self.estimator, FrozenEstimator):
            self.estimator_.fit(X, coding.codes(y), **row_arguments(X, params))

    def _fit_blocks(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        from toprank.decision._blocks import labelled_blocks

        rows = labelled_blocks(self, X, y, params)
        self.classes_ = np.asarray(rows.coding.classes)
        self.estimator_ = rows.coding.told(clone_for_scores(self.estimator))
        if not isinstance(self.estimator, FrozenEstimator):
            rows.fitted(self.estimator_)

    def _models(self) -> list[Any]:
        return [self.estimator_] if hasattr(self, "estimator_") else []

    def _check_parameters(self) -> None:
        check_response_method(self.response_method)
        if (self.k is None) == (self.share is None):
            raise ValueError(f"give either k or share, got k={self.k!r} and share={self.share!r}")
        if self.share is not None:
            check_share("share", self.share, low_open=True)
        elif not is_count(self.k, 1):
            raise InputError.of("k", self.k, "must be an integer of at least 1", "use {share=} for a share of the rows")

    def get_metadata_routing(self) -> MetadataRouter:
        """How arguments of `fit` reach the estimator, and that `predict` may take groups.

        Returns
        -------
        MetadataRouter
            The routing of this object.
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        )

    def decision_function(self, X: Any) -> Any:
        """Scores of the estimator, by which rows are ordered; zero is no threshold here. Of Dask a Dask array.

        {rows_and_scores}
        """
        check_is_fitted(self)
        warn_of_sorted_scorer(self.classes_)
        return scores_of(self.estimator_, X, self.response_method)

    def predict(self, X: Any, groups: ArrayLike | None = None) -> Any:
        """The positive class for the best rows of each group; a Dask array, of rows that Dask has.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe, Dask array or dataframe} of shape (n_samples, n_features)
            A batch of rows; one of Dask is scored at once and keeps its scores in blocks.
        groups : array-like of shape (n_samples,), optional
            The group of each row, such as its day; by default all rows are one group.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels out of `classes_`.
        """
        scores = self.decision_function(X)
        if not is_dask(scores):
            return labels_of(best_rows(scores, k=self.k, share=self.share, groups=groups), self.classes_)
        if groups is not None:
            raise InputError.saying(
                "groups are for rows in one memory, and X is a {kind} of Dask; predict the rows of each group by "
                "themselves, or use AlertShareClassifier, which decides each row alone",
                kind=type(X).__name__,
            )
        from toprank.decision._blocks import best_in_blocks

        return labels_of(best_in_blocks(scores, self.k, self.share, ROUNDING), self.classes_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = get_tags(self.estimator).input_tags.pairwise
        return tags


def best_rows(
    scores: NDArray[Any], *, k: int | None, share: float | None, groups: ArrayLike | None = None
) -> NDArray[np.bool_]:
    """Which rows are among the k best, or the best share, of their group; of equal ones the first are taken."""
    n = len(scores)
    if groups is None:
        codes = np.zeros(n, dtype=np.intp)
    else:
        labels = label_column(groups, "groups")
        check_consistent_length(scores, labels)
        codes = group_codes(labels).astype(np.intp)
    sizes = np.bincount(codes, minlength=1)
    wanted = np.full(len(sizes), k) if share is None else np.floor(share * sizes * (1 + ROUNDING))
    order = np.lexsort((-scores, codes))  # stable: rows of equal score stay in the order of the batch
    position = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    chosen = np.zeros(n, dtype=bool)
    chosen[order] = position < wanted[codes[order]]
    return chosen
